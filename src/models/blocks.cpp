// SPDX-License-Identifier: Apache-2.0
// tidy: helper
#include "models/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace artel::models {

using graph::GraphBuilder;
using graph::Tensor;

void leave_out_predictors(ConfigReader& reader, ModelShape& shape) {
    const std::uint32_t predictors = reader.count_or_none("nextn_predict_layers");
    reader.expect(predictors < shape.layer_count,
                  invalid_argument("{} is {}, expected below {}, which is {}",
                                   reader.key("nextn_predict_layers"), predictors,
                                   reader.key("block_count"), shape.layer_count));
    if (predictors < shape.layer_count) shape.layer_count -= predictors;
}

HeadShape read_heads(ConfigReader& reader, std::uint32_t width) {
    const std::string head_key = reader.key("attention.head_count");
    const std::string kv_key = reader.key("attention.head_count_kv");
    HeadShape heads;
    heads.head_count = reader.count("attention.head_count");
    heads.kv_head_count = reader.count_or("attention.head_count_kv", heads.head_count);
    reader.expect(heads.head_count % heads.kv_head_count == 0,
                  invalid_argument("{} is {}, expected a multiple of {}, which is {}", head_key,
                                   heads.head_count, kv_key, heads.kv_head_count));
    reader.expect(
        reader.has("attention.key_length") || width % heads.head_count == 0,
        invalid_argument("{} is {}, expected a multiple of {}, which is {}",
                         reader.key("embedding_length"), width, head_key, heads.head_count));
    const std::uint32_t head_dim = std::max(1U, width / heads.head_count);
    heads.key_dim = reader.count_or("attention.key_length", head_dim);
    heads.value_dim = reader.count_or("attention.value_length", head_dim);
    return heads;
}

std::uint32_t read_rope_dim(ConfigReader& reader, std::uint32_t key_dim) {
    const std::uint32_t rope_dim = reader.count_or("rope.dimension_count", key_dim);
    reader.expect(rope_dim % 2 == 0 && rope_dim <= key_dim,
                  invalid_argument("{} is {}, expected an even number up to the head's {} columns",
                                   reader.key("rope.dimension_count"), rope_dim, key_dim));
    return rope_dim;
}

float read_linear_rope_scale(ConfigReader& reader) {
    const std::string_view type = reader.text_or_empty("rope.scaling.type");
    if (type.empty()) return 1 / reader.positive_or("rope.scale_linear", 1);  // of early files
    if (type == "none") return 1;
    reader.expect(
        type == "linear",
        unimplemented("{} is \"{}\", and this build knows none, linear, yarn and longrope",
                      reader.key("rope.scaling.type"), type.substr(0, 64)));
    return 1 / reader.positive_or("rope.scaling.factor", 1);
}

RopeSettings read_rope(ConfigReader& reader, std::uint32_t key_dim) {
    RopeSettings rope;
    rope.dim = read_rope_dim(reader, key_dim);
    rope.base = reader.positive_or("rope.freq_base", 10000);
    const std::string_view type = reader.text_or_empty("rope.scaling.type");
    if (type != "yarn" && type != "longrope") {
        rope.frequency_scale = read_linear_rope_scale(reader);
        return rope;
    }
    rope.magnitude = reader.positive_or("rope.scaling.attn_factor", 1);
    if (type == "longrope") return rope;
    const float factor = reader.positive("rope.scaling.factor");
    rope.frequency_scale = 1 / factor;
    rope.ramp =
        graph::yarn_ramp({.rope_dim = rope.dim,
                          .base = rope.base,
                          .original_context = reader.count("rope.scaling.original_context_length"),
                          .beta_fast = reader.positive_or("rope.scaling.yarn_beta_fast", 32),
                          .beta_slow = reader.positive_or("rope.scaling.yarn_beta_slow", 1)});
    rope.magnitude *= graph::yarn_magnitude(factor, 0.1F);
    return rope;
}

float read_norm_epsilon(ConfigReader& reader) {
    return reader.positive("attention.layer_norm_rms_epsilon");
}

DenseConfig read_dense(ConfigReader& reader) {
    DenseConfig config;
    config.shape = read_shape(reader);
    config.shape.state_groups = {{.kind = graph::StateKind::Paged}};
    config.heads = read_heads(reader, config.shape.width);
    config.ffn_width = reader.count("feed_forward_length");
    config.rope = read_rope(reader, config.heads.key_dim);
    config.norm_epsilon = read_norm_epsilon(reader);
    return config;
}

Tensor linear(GraphBuilder& g, const std::string& name, Tensor x, std::uint64_t columns) {
    const Tensor weight = g.weight(name + ".weight", columns, g.shape(x).columns);
    const std::string bias = name + ".bias";
    if (!g.has_weight(bias)) return g.matmul(weight, x);
    return g.matmul(weight, x, {.scale = std::nullopt, .bias = g.vector(bias, columns)});
}

Tensor norm(GraphBuilder& g, const std::string& name, Tensor x, std::uint64_t width,
            float epsilon) {
    return g.rms_norm(x, g.vector(name, width), epsilon);
}

namespace {

/// down(f(gate(x)) * up(x)) by ffn_gate, ffn_up and ffn_down, each followed by `suffix`.
Tensor gated(GraphBuilder& g, std::uint32_t layer, Tensor x, std::uint64_t hidden,
             graph::GateKind kind, const std::string& suffix) {
    const std::uint64_t width = g.shape(x).columns;
    const Tensor gate = linear(g, layer_tensor(layer, "ffn_gate" + suffix), x, hidden);
    const Tensor up = linear(g, layer_tensor(layer, "ffn_up" + suffix), x, hidden);  // (R, hidden)
    const Tensor gated = g.gated_activation(kind, gate, up);                         // (R, hidden)
    return linear(g, layer_tensor(layer, "ffn_down" + suffix), gated, width);        // (R, width)
}

}  // namespace

Tensor gated_ffn(GraphBuilder& g, std::uint32_t layer, Tensor x, std::uint64_t hidden,
                 graph::GateKind kind) {
    return gated(g, layer, x, hidden, kind, "");
}

MoeSettings read_moe(ConfigReader& reader) {
    MoeSettings moe;
    moe.hidden = reader.count("expert_feed_forward_length");
    moe.routing.expert_count = reader.count("expert_count");
    moe.routing.used_count = reader.count("expert_used_count");
    reader.expect(moe.routing.used_count <= moe.routing.expert_count,
                  invalid_argument("{} is {}, expected at most {}, which is {}",
                                   reader.key("expert_used_count"), moe.routing.used_count,
                                   reader.key("expert_count"), moe.routing.expert_count));
    return moe;
}

void read_routing(ConfigReader& reader, graph::Routing& routing) {
    constexpr std::uint32_t kSoftmax = 1;  // values of the key in GGUF
    constexpr std::uint32_t kSigmoid = 2;
    const std::uint32_t kind = reader.count_or_none("expert_gating_func");
    reader.expect(kind <= kSigmoid,
                  unimplemented("{} is {}, and this build knows 1 (softmax) and 2 (sigmoid)",
                                reader.key("expert_gating_func"), kind));
    if (kind == kSoftmax) routing.score = graph::ExpertScore::Softmax;
    if (kind == kSigmoid) routing.score = graph::ExpertScore::Sigmoid;
    routing.groups = std::max(1U, reader.count_or_none("expert_group_count"));
    routing.groups_used = std::max(1U, reader.count_or_none("expert_group_used_count"));
    routing.normalises = reader.flag_or("expert_weights_norm", false);
    routing.scale = reader.positive_or_none("expert_weights_scale");
    if (routing.scale == 0) routing.scale = 1;  // as files say that there is none
}

Tensor routed_ffn(GraphBuilder& g, std::uint32_t layer, Tensor x, const MoeSettings& moe) {
    const std::uint64_t width = g.shape(x).columns;
    const std::uint64_t hidden = moe.hidden;
    const std::uint64_t experts = moe.routing.expert_count;
    const auto matrix = [&](const char* name, std::uint64_t rows, std::uint64_t columns) {
        return g.weight(layer_tensor(layer, name), experts * rows, columns);
    };
    const auto bias = [&](const char* name, std::uint64_t columns) {
        const std::string full = layer_tensor(layer, name);
        return g.has_weight(full) ? std::optional(g.weight(full, experts, columns)) : std::nullopt;
    };
    graph::ExpertsOptions options;
    const std::string selection = layer_tensor(layer, "exp_probs_b.bias");
    if (g.has_weight(selection)) options.selection_bias = g.vector(selection, experts);
    options.gate = matrix("ffn_gate_exps.weight", hidden, width);
    options.up = matrix("ffn_up_exps.weight", hidden, width);
    options.down = matrix("ffn_down_exps.weight", width, hidden);
    options.gate_bias = bias("ffn_gate_exps.bias", hidden);
    options.up_bias = bias("ffn_up_exps.bias", hidden);
    options.down_bias = bias("ffn_down_exps.bias", width);
    options.routing = moe.routing;
    options.kind = moe.kind;
    const Tensor logits = linear(g, layer_tensor(layer, "ffn_gate_inp"), x, experts);  // (R, E)
    return g.routed_experts(x, logits, options);                                       // (R, width)
}

Tensor shared_ffn(GraphBuilder& g, std::uint32_t layer, Tensor x, std::uint64_t hidden) {
    return gated(g, layer, x, hidden, graph::GateKind::Silu, "_shexp");
}

DenseThenExperts read_dense_then_experts(ConfigReader& reader, graph::ExpertScore score) {
    DenseThenExperts settings;
    settings.ffn_width = reader.count("feed_forward_length");
    settings.dense_layers = reader.count_or_none("leading_dense_block_count");
    settings.moe = read_moe(reader);
    settings.moe.routing.score = score;
    read_routing(reader, settings.moe.routing);
    settings.shared_width = settings.moe.hidden * reader.count_or_none("expert_shared_count");
    return settings;
}

Tensor dense_or_routed_ffn(GraphBuilder& g, std::uint32_t layer, Tensor x,
                           const DenseThenExperts& settings) {
    if (layer < settings.dense_layers)
        return gated_ffn(g, layer, x, settings.ffn_width, graph::GateKind::Silu);
    const Tensor routed = routed_ffn(g, layer, x, settings.moe);  // (R, width)
    if (settings.shared_width == 0) return routed;
    return g.add(routed, shared_ffn(g, layer, x, settings.shared_width));
}

HeadRows project_heads(GraphBuilder& g, std::uint32_t layer, const HeadShape& heads, Tensor x) {
    const std::uint64_t kv_heads = heads.kv_head_count;
    const std::uint64_t query_columns = std::uint64_t{heads.head_count} * heads.key_dim;
    return {.query = linear(g, layer_tensor(layer, "attn_q"), x, query_columns),
            .keys = linear(g, layer_tensor(layer, "attn_k"), x, kv_heads * heads.key_dim),
            .values = linear(g, layer_tensor(layer, "attn_v"), x, kv_heads * heads.value_dim)};
}

HeadRows project_fused_heads(GraphBuilder& g, std::uint32_t layer, const HeadShape& heads,
                             Tensor x) {
    const std::uint64_t query_rows = std::uint64_t{heads.head_count} * heads.key_dim;
    const std::uint64_t key_rows = std::uint64_t{heads.kv_head_count} * heads.key_dim;
    const std::uint64_t value_rows = std::uint64_t{heads.kv_head_count} * heads.value_dim;
    const Tensor fused = g.weight(layer_tensor(layer, "attn_qkv.weight"),
                                  query_rows + key_rows + value_rows, g.shape(x).columns);
    const auto part = [&](std::uint64_t first, std::uint64_t count) {
        return g.matmul(g.weight_rows(fused, first, count), x);
    };
    return {.query = part(0, query_rows),
            .keys = part(query_rows, key_rows),
            .values = part(query_rows + key_rows, value_rows)};
}

void norm_heads(GraphBuilder& g, std::uint32_t layer, const HeadShape& heads, float epsilon,
                HeadRows& rows) {
    rows.query =
        norm(g, layer_tensor(layer, "attn_q_norm.weight"), rows.query, heads.key_dim, epsilon);
    rows.keys =
        norm(g, layer_tensor(layer, "attn_k_norm.weight"), rows.keys, heads.key_dim, epsilon);
}

void turn_heads(GraphBuilder& g, const HeadShape& heads, const RopeSettings& rope,
                graph::RopeStyle style, HeadRows& rows, const std::optional<Tensor>& factors) {
    graph::RopeOptions options{.head_count = heads.head_count,
                               .head_dim = heads.key_dim,
                               .rope_dim = rope.dim,
                               .style = style,
                               .base = rope.base,
                               .frequency_scale = rope.frequency_scale,
                               .ramp = rope.ramp,
                               .magnitude = rope.magnitude,
                               .factors = factors};
    rows.query = g.rope(rows.query, options);
    options.head_count = heads.kv_head_count;
    rows.keys = g.rope(rows.keys, options);
}

Tensor attend(GraphBuilder& g, const HeadShape& heads, const HeadRows& rows,
              const AttendOptions& options) {
    const graph::StateSlot slot =
        g.add_layer_state(options.group, {.kv_head_count = heads.kv_head_count,
                                          .key_dim = heads.key_dim,
                                          .value_dim = heads.value_dim,
                                          .values_in_keys = options.values_in_keys});
    g.store_state(slot, rows.keys, rows.values);
    const float scale =
        options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<float>(heads.key_dim));
    return g.attention(slot, rows.query,
                       {.head_count = heads.head_count,
                        .scale = scale,
                        .softcap = options.softcap,
                        .sinks = options.sinks});
}

Tensor embed(GraphBuilder& g, const ModelShape& shape, float scale) {
    return g.embed_rows(g.weight("token_embd.weight", shape.vocabulary_size, shape.width), scale);
}

Tensor logits(GraphBuilder& g, const ModelShape& shape, Tensor x) {
    const char* name = g.has_weight("output.weight") ? "output" : "token_embd";
    return linear(g, name, x, shape.vocabulary_size);
}

Tensor head(GraphBuilder& g, const ModelShape& shape, float epsilon, Tensor x) {
    const Tensor rows = g.select_rows(x);                                             // (L, width)
    const Tensor normed = norm(g, "output_norm.weight", rows, shape.width, epsilon);  // (L, width)
    return logits(g, shape, normed);
}

}  // namespace artel::models
