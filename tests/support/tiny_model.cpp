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

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ8Zero = 8;

/// Adds tensors with random values: matrices in Q8_0, so that rounded activations are part of what
/// the tests compare; the embedding and vectors in F32.
class TensorMaker {
  public:
    TensorMaker(gguf::GgufWriter& writer, std::uint64_t seed) : writer_(writer), random_(seed) {}

    void add_vector(const std::string& name, std::uint64_t columns) {
        add_floats(name, {columns}, columns, /*centre=*/1, /*spread=*/0.5);
    }
    void add_embedding(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
        add_floats(name, {columns, rows}, rows * columns, /*centre=*/0, /*spread=*/1);
    }
    void add_matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
        std::vector<std::byte> blocks;
        for (std::uint64_t i = 0; i < rows * columns / 32; ++i) {
            const std::uint16_t scale = 0x1800;  // 2^-9 as f16: values up to about 0.25
            const auto* const bytes = reinterpret_cast<const std::byte*>(&scale);
            blocks.insert(blocks.end(), bytes, bytes + sizeof(scale));
            for (int j = 0; j < 32; ++j)
                blocks.push_back(static_cast<std::byte>(random_.between(-127, 127)));
        }
        writer_.add_tensor(name, {columns, rows}, kQ8Zero, blocks);
    }

  private:
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

void add_settings(gguf::GgufWriter& writer, const std::string& name, const TinyShape& shape) {
    const auto add = [&](const char* key, std::uint32_t value) {
        writer.add_metadata(name + "." + key, value);
    };
    writer.add_metadata("general.architecture", std::string_view(name));
    add("block_count", shape.layers);
    add("context_length", shape.context);
    add("embedding_length", shape.width);
    add("feed_forward_length", shape.ffn_width);
    add("attention.head_count", shape.heads);
    add("attention.head_count_kv", shape.kv_heads);
    add("attention.key_length", shape.head_dim);
    add("attention.value_length", shape.head_dim);
    writer.add_metadata(name + ".attention.layer_norm_rms_epsilon", 1e-5F);
    std::vector<std::string> spellings;
    for (std::uint32_t i = 0; i < shape.vocabulary; ++i) spellings.push_back(fmt::format("t{}", i));
    writer.add_metadata_array("tokenizer.ggml.tokens",
                              std::vector<std::string_view>(spellings.begin(), spellings.end()));
}

void add_layer(TensorMaker& make, std::uint32_t layer, const TinyShape& shape, bool is_gemma) {
    const auto name = [&](const char* part) {
        return fmt::format("blk.{}.{}.weight", layer, part);
    };
    make.add_vector(name("attn_norm"), shape.width);
    make.add_matrix(name("attn_q"), shape.heads * shape.head_dim, shape.width);
    make.add_matrix(name("attn_k"), shape.kv_heads * shape.head_dim, shape.width);
    make.add_matrix(name("attn_v"), shape.kv_heads * shape.head_dim, shape.width);
    make.add_matrix(name("attn_output"), shape.width, shape.heads * shape.head_dim);
    make.add_vector(name("ffn_norm"), shape.width);
    make.add_matrix(name("ffn_gate"), shape.ffn_width, shape.width);
    make.add_matrix(name("ffn_up"), shape.ffn_width, shape.width);
    make.add_matrix(name("ffn_down"), shape.width, shape.ffn_width);
    if (!is_gemma) return;
    make.add_vector(name("attn_q_norm"), shape.head_dim);
    make.add_vector(name("attn_k_norm"), shape.head_dim);
    make.add_vector(name("post_attention_norm"), shape.width);
    make.add_vector(name("post_ffw_norm"), shape.width);
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
    const bool is_gemma = architecture == "gemma3";
    ARTEL_CHECK(is_gemma || architecture == "llama", "no tiny model of this architecture");
    gguf::GgufWriter writer;
    add_settings(writer, std::string(architecture), shape);
    if (is_gemma) {
        writer.add_metadata("gemma3.attention.sliding_window", shape.window);
        writer.add_metadata("gemma3.attention.sliding_window_pattern", shape.window_pattern);
    }
    TensorMaker make(writer, shape.seed);
    make.add_embedding("token_embd.weight", shape.vocabulary, shape.width);
    for (std::uint32_t i = 0; i < shape.layers; ++i) add_layer(make, i, shape, is_gemma);
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
