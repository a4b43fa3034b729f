// SPDX-License-Identifier: Apache-2.0
#include "support/tiny_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/random.hpp"
#include "gguf/gguf_writer.hpp"
#include "quant/formats.hpp"
#include "quant/type_names.hpp"

namespace artel::test {

namespace {

constexpr std::uint32_t kQ8Zero = 8;

/// Adds tensors with random values: matrices in Q8_0, so that rounded activations are part of what
/// the tests compare; the embedding and vectors in F32.
class TensorMaker {
  public:
    TensorMaker(gguf::GgufWriter& writer, std::uint64_t seed) : writer_(writer), random_(seed) {}

    void add_vector(const std::string& name, std::uint64_t columns) {
        add_floats(name, {columns}, columns, /*centre=*/1, /*spread=*/0.5);
    }
    /// Vectors of all experts, one a row.
    void add_rows(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
        add_floats(name, {columns, rows}, rows * columns, /*centre=*/0, /*spread=*/0.5);
    }
    void add_embedding(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
        add_floats(name, {columns, rows}, rows * columns, /*centre=*/0, /*spread=*/1);
    }
    void add_matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
        add_quants(name, {columns, rows}, rows * columns);
    }
    void add_experts(const std::string& name, std::uint64_t experts, std::uint64_t rows,
                     std::uint64_t columns) {
        add_quants(name, {columns, rows, experts}, experts * rows * columns);
    }

  private:
    void add_quants(const std::string& name, std::vector<std::uint64_t> dims, std::uint64_t count) {
        std::vector<std::byte> blocks;
        for (std::uint64_t i = 0; i < count / 32; ++i) {
            const std::uint16_t scale = 0x1800;  // 2^-9 as f16: values up to about 0.25
            const auto* const bytes = reinterpret_cast<const std::byte*>(&scale);
            blocks.insert(blocks.end(), bytes, bytes + sizeof(scale));
            for (int j = 0; j < 32; ++j)
                blocks.push_back(static_cast<std::byte>(random_.between(-127, 127)));
        }
        writer_.add_tensor(name, std::move(dims), kQ8Zero, blocks);
    }
    void add_floats(const std::string& name, std::vector<std::uint64_t> dims, std::uint64_t count,
                    double centre, double spread) {
        std::vector<float> values(count);
        for (float& value : values)
            value = static_cast<float>(centre + spread * (2 * random_.unit() - 1));
        writer_.add_tensor(name, std::move(dims), values);
    }
    gguf::GgufWriter& writer_;
    Random random_;
};

/// What is written for one model: settings by their names, tensors by their layer.
struct Writing {
    gguf::GgufWriter& writer;
    TensorMaker& make;
    std::string architecture;
    const TinyShape& shape;
    std::uint32_t layer = 0;

    template <class Value>
    void set(const char* key, Value value) const {
        writer.add_metadata(architecture + "." + key, value);
    }
    std::string name(const char* part) const { return fmt::format("blk.{}.{}", layer, part); }
    void vector(const char* part, std::uint64_t columns) const {
        make.add_vector(name(part), columns);
    }
    void matrix(const char* part, std::uint64_t rows, std::uint64_t columns) const {
        make.add_matrix(name(part), rows, columns);
    }
    void experts(const char* part, std::uint64_t rows, std::uint64_t columns) const {
        make.add_experts(name(part), shape.experts, rows, columns);
    }
    void rows(const char* part, std::uint64_t count, std::uint64_t columns) const {
        make.add_rows(name(part), count, columns);
    }
    std::uint64_t query_columns() const { return std::uint64_t{shape.heads} * shape.head_dim; }
    std::uint64_t kv_columns() const { return std::uint64_t{shape.kv_heads} * shape.head_dim; }
};

void add_heads(const Writing& w) {
    w.matrix("attn_q.weight", w.query_columns(), w.shape.width);
    w.matrix("attn_k.weight", w.kv_columns(), w.shape.width);
    w.matrix("attn_v.weight", w.kv_columns(), w.shape.width);
    w.matrix("attn_output.weight", w.shape.width, w.query_columns());
}
void add_head_biases(const Writing& w) {
    w.vector("attn_q.bias", w.query_columns());
    w.vector("attn_k.bias", w.kv_columns());
    w.vector("attn_v.bias", w.kv_columns());
}
void add_fused_heads(const Writing& w) {
    w.matrix("attn_qkv.weight", w.query_columns() + 2 * w.kv_columns(), w.shape.width);
    w.matrix("attn_output.weight", w.shape.width, w.query_columns());
}
void add_head_norms(const Writing& w) {
    w.vector("attn_q_norm.weight", w.shape.head_dim);
    w.vector("attn_k_norm.weight", w.shape.head_dim);
}
void add_norms(const Writing& w, const char* of_attention, const char* of_ffn) {
    w.vector(of_attention, w.shape.width);
    w.vector(of_ffn, w.shape.width);
}
void add_gated_ffn(const Writing& w) {
    w.matrix("ffn_gate.weight", w.shape.ffn_width, w.shape.width);
    w.matrix("ffn_up.weight", w.shape.ffn_width, w.shape.width);
    w.matrix("ffn_down.weight", w.shape.width, w.shape.ffn_width);
}

void add_experts(const Writing& w) {
    w.rows("ffn_gate_inp.weight", w.shape.experts, w.shape.width);
    w.experts("ffn_gate_exps.weight", w.shape.expert_width, w.shape.width);
    w.experts("ffn_up_exps.weight", w.shape.expert_width, w.shape.width);
    w.experts("ffn_down_exps.weight", w.shape.width, w.shape.expert_width);
}
void add_shared_expert(const Writing& w) {
    w.matrix("ffn_gate_shexp.weight", w.shape.expert_width, w.shape.width);
    w.matrix("ffn_up_shexp.weight", w.shape.expert_width, w.shape.width);
    w.matrix("ffn_down_shexp.weight", w.shape.width, w.shape.expert_width);
}

void add_llama_layer(const Writing& w) {
    add_norms(w, "attn_norm.weight", "ffn_norm.weight");
    add_heads(w);
    add_gated_ffn(w);
}
void add_qwen2_layer(const Writing& w) {
    add_llama_layer(w);
    add_head_biases(w);
}
void add_qwen3_layer(const Writing& w) {
    add_llama_layer(w);
    add_head_norms(w);
}
void add_gemma2_layer(const Writing& w) {
    add_llama_layer(w);
    add_norms(w, "post_attention_norm.weight", "post_ffw_norm.weight");
}
void add_gemma3_layer(const Writing& w) {
    add_gemma2_layer(w);
    add_head_norms(w);
}
void add_phi3_layer(const Writing& w) {
    add_norms(w, "attn_norm.weight", "ffn_norm.weight");
    add_fused_heads(w);
    w.matrix("ffn_up.weight", std::uint64_t{2} * w.shape.ffn_width, w.shape.width);
    w.matrix("ffn_down.weight", w.shape.width, w.shape.ffn_width);
}
void add_olmo2_layer(const Writing& w) {
    add_norms(w, "post_attention_norm.weight", "post_ffw_norm.weight");
    add_heads(w);
    w.vector("attn_q_norm.weight", w.query_columns());
    w.vector("attn_k_norm.weight", w.kv_columns());
    add_gated_ffn(w);
}
void add_falcon_layer(const Writing& w) {
    add_norms(w, "attn_norm.weight", "attn_norm_2.weight");
    add_norms(w, "attn_norm.bias", "attn_norm_2.bias");
    add_fused_heads(w);
    w.matrix("ffn_up.weight", w.shape.ffn_width, w.shape.width);
    w.matrix("ffn_down.weight", w.shape.width, w.shape.ffn_width);
}

void add_qwen3moe_layer(const Writing& w) {
    add_norms(w, "attn_norm.weight", "ffn_norm.weight");
    add_heads(w);
    add_head_norms(w);
    add_experts(w);
}
void add_gpt_oss_layer(const Writing& w) {
    add_norms(w, "attn_norm.weight", "post_attention_norm.weight");
    add_heads(w);
    add_head_biases(w);
    w.vector("attn_output.bias", w.shape.width);
    w.vector("attn_sinks.weight", w.shape.heads);
    add_experts(w);
    w.vector("ffn_gate_inp.bias", w.shape.experts);
    w.rows("ffn_gate_exps.bias", w.shape.experts, w.shape.expert_width);
    w.rows("ffn_up_exps.bias", w.shape.experts, w.shape.expert_width);
    w.rows("ffn_down_exps.bias", w.shape.experts, w.shape.width);
}
void add_glm4moe_layer(const Writing& w) {
    add_norms(w, "attn_norm.weight", "post_attention_norm.weight");
    add_heads(w);
    add_head_biases(w);
    add_head_norms(w);
    if (w.layer == 0) return add_gated_ffn(w);
    add_experts(w);
    add_shared_expert(w);
    w.vector("exp_probs_b.bias", w.shape.experts);
}

/// Heads of 32 plain and head_dim turned columns over a latent vector of 32, values of 32.
void add_deepseek2_layer(const Writing& w) {
    add_norms(w, "attn_norm.weight", "ffn_norm.weight");
    w.matrix("attn_q_a.weight", 32, w.shape.width);
    w.vector("attn_q_a_norm.weight", 32);
    w.matrix("attn_q_b.weight", w.shape.heads * (32 + w.shape.head_dim), 32);
    w.matrix("attn_kv_a_mqa.weight", 32 + w.shape.head_dim, w.shape.width);
    w.vector("attn_kv_a_norm.weight", 32);
    w.make.add_experts(w.name("attn_k_b.weight"), w.shape.heads, 32, 32);
    w.make.add_experts(w.name("attn_v_b.weight"), w.shape.heads, 32, 32);
    w.matrix("attn_output.weight", w.shape.width, w.shape.heads * 32);
    if (w.layer == 0) return add_gated_ffn(w);
    add_experts(w);
    add_shared_expert(w);
    w.vector("exp_probs_b.bias", w.shape.experts);
}

void no_settings(const Writing&) {}
void set_window(const Writing& w) {
    w.set("attention.sliding_window", w.shape.window);
}
void set_gemma3(const Writing& w) {
    set_window(w);
    w.set("attention.sliding_window_pattern", w.shape.window_pattern);
}
void set_yarn(const Writing& w) {
    w.set("rope.scaling.type", std::string_view("yarn"));
    w.set("rope.scaling.factor", 4.0F);
    w.set("rope.scaling.original_context_length", std::uint32_t{64});
}
void set_falcon(const Writing& w) {
    w.set("attention.layer_norm_epsilon", 1e-5F);
    w.make.add_vector("output_norm.bias", w.shape.width);
}

void set_experts(const Writing& w) {
    w.set("expert_count", w.shape.experts);
    w.set("expert_used_count", w.shape.experts_used);
    w.set("expert_feed_forward_length", w.shape.expert_width);
}
void set_gpt_oss(const Writing& w) {
    set_experts(w);
    set_window(w);
    set_yarn(w);
}
/// Two groups of which one may be chosen from, a shared expert, one dense layer.
void set_grouped_experts(const Writing& w) {
    set_experts(w);
    w.set("expert_gating_func", std::uint32_t{2});
    w.set("expert_group_count", std::uint32_t{2});
    w.set("expert_group_used_count", std::uint32_t{1});
    w.set("expert_weights_scale", 1.5F);
    w.set("expert_weights_norm", true);
    w.set("expert_shared_count", std::uint32_t{1});
    w.set("leading_dense_block_count", std::uint32_t{1});
}
void set_glm4moe(const Writing& w) {
    set_grouped_experts(w);
    w.set("rope.dimension_count", w.shape.head_dim / 2);
    w.set("nextn_predict_layers", std::uint32_t{1});
}
void set_deepseek2(const Writing& w) {
    set_grouped_experts(w);
    set_yarn(w);
    w.set("rope.scaling.yarn_log_multiplier", 0.1F);
    w.set("rope.dimension_count", w.shape.head_dim);
    w.set("attention.q_lora_rank", std::uint32_t{32});
    w.set("attention.kv_lora_rank", std::uint32_t{32});
    w.set("attention.key_length_mla", 32 + w.shape.head_dim);
    w.set("attention.value_length_mla", std::uint32_t{32});
}

struct Kind {
    std::string_view architecture;
    void (*add_settings)(const Writing&);
    void (*add_layer)(const Writing&);
};
// clang-format off
constexpr Kind kKinds[] = {
    {"llama", no_settings, add_llama_layer},
    {"gemma3", set_gemma3, add_gemma3_layer},
    {"qwen2", set_yarn, add_qwen2_layer},
    {"qwen3", no_settings, add_qwen3_layer},
    {"gemma2", set_window, add_gemma2_layer},
    {"phi3", set_window, add_phi3_layer},
    {"olmo2", no_settings, add_olmo2_layer},
    {"falcon", set_falcon, add_falcon_layer},
    {"qwen3moe", set_experts, add_qwen3moe_layer},
    {"gpt-oss", set_gpt_oss, add_gpt_oss_layer},
    {"glm4moe", set_glm4moe, add_glm4moe_layer},
    {"deepseek2", set_deepseek2, add_deepseek2_layer},
};
// clang-format on

void add_settings(const Writing& w) {
    const TinyShape& shape = w.shape;
    w.writer.add_metadata("general.architecture", std::string_view(w.architecture));
    // glm4moe counts a block that predicts further tokens, whose tensors nobody needs.
    w.set("block_count", shape.layers + (w.architecture == "glm4moe" ? 1U : 0U));
    w.set("context_length", shape.context);
    w.set("embedding_length", shape.width);
    w.set("feed_forward_length", shape.ffn_width);
    w.set("attention.head_count", shape.heads);
    w.set("attention.head_count_kv", shape.kv_heads);
    w.set("attention.key_length", shape.head_dim);
    w.set("attention.value_length", shape.head_dim);
    w.set("attention.layer_norm_rms_epsilon", 1e-5F);
    std::vector<std::string> spellings;
    for (std::uint32_t i = 0; i < shape.vocabulary; ++i) spellings.push_back(fmt::format("t{}", i));
    w.writer.add_metadata_array("tokenizer.ggml.tokens",
                                std::vector<std::string_view>(spellings.begin(), spellings.end()));
}

}  // namespace

Error MemoryWeightSource::read(std::string_view tensor, std::uint64_t offset,
                               std::span<std::byte> target) {
    const gguf::TensorInfo* found = index_.find_tensor(tensor);
    if (found == nullptr) return not_found("{}: no such tensor", tensor);
    if (std::find(tensors_read_.begin(), tensors_read_.end(), tensor) == tensors_read_.end())
        tensors_read_.emplace_back(tensor);
    ARTEL_CHECK(offset + target.size() <= found->bytes, "read past the end of a tensor");
    std::memcpy(target.data(), file_.data() + found->offset + offset, target.size());
    return ok();
}

std::unique_ptr<TinyModel> TinyModel::create(std::string_view architecture,
                                             const TinyShape& shape) {
    const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) {
        return k.architecture == architecture;
    });
    ARTEL_CHECK(kind != std::end(kKinds), "no tiny model of this architecture");
    gguf::GgufWriter writer;
    TensorMaker make(writer, shape.seed);
    Writing writing{writer, make, std::string(architecture), shape};
    add_settings(writing);
    kind->add_settings(writing);
    make.add_embedding("token_embd.weight", shape.vocabulary, shape.width);
    for (; writing.layer < shape.layers; ++writing.layer) kind->add_layer(writing);
    make.add_vector("output_norm.weight", shape.width);
    if (shape.has_own_head) make.add_matrix("output.weight", shape.vocabulary, shape.width);

    auto model = std::unique_ptr<TinyModel>(new TinyModel());
    model->file_ = writer.to_bytes();
    const std::span<const std::byte> bytes = model->file_;
    auto index = gguf::GgufIndex::parse({&bytes, 1}, quant::block_size_of);
    ARTEL_CHECK(index.ok(), "the tiny model's own file is refused");
    model->index_ = std::make_unique<gguf::GgufIndex>(*std::move(index));
    return model;
}

}  // namespace artel::test
