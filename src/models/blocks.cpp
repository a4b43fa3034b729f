// SPDX-License-Identifier: Apache-2.0
// tidy: helper
#include "models/blocks.hpp"

#include <algorithm>
#include <optional>

namespace artel::models {

using graph::GraphBuilder;
using graph::Tensor;

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
    reader.expect(type == "linear",
                  unimplemented("{} is \"{}\", and this build knows none and linear",
                                reader.key("rope.scaling.type"), type.substr(0, 64)));
    return 1 / reader.positive_or("rope.scaling.factor", 1);
}

float read_norm_epsilon(ConfigReader& reader) {
    return reader.positive("attention.layer_norm_rms_epsilon");
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

Tensor gated_ffn(GraphBuilder& g, std::uint32_t layer, Tensor x, std::uint64_t hidden,
                 graph::GateKind kind) {
    const std::uint64_t width = g.shape(x).columns;
    const Tensor gate = linear(g, layer_tensor(layer, "ffn_gate"), x, hidden);  // (R, hidden)
    const Tensor up = linear(g, layer_tensor(layer, "ffn_up"), x, hidden);      // (R, hidden)
    const Tensor gated = g.gated_activation(kind, gate, up);                    // (R, hidden)
    return linear(g, layer_tensor(layer, "ffn_down"), gated, width);            // (R, width)
}

Tensor attend(GraphBuilder& g, std::uint32_t group, const HeadShape& heads, float scale,
              Tensor query, Tensor keys, Tensor values) {
    const graph::StateSlot slot = g.add_layer_state(group, {.kv_head_count = heads.kv_head_count,
                                                            .key_dim = heads.key_dim,
                                                            .value_dim = heads.value_dim});
    g.store_state(slot, keys, values);
    return g.attention(slot, query, {.head_count = heads.head_count, .scale = scale});
}

Tensor head(GraphBuilder& g, const ModelShape& shape, float epsilon, Tensor x) {
    const Tensor rows = g.select_rows(x);                                             // (L, width)
    const Tensor normed = norm(g, "output_norm.weight", rows, shape.width, epsilon);  // (L, width)
    if (g.has_weight("output.weight"))
        return linear(g, "output", normed, shape.vocabulary_size);  // (L, vocabulary)
    return linear(g, "token_embd", normed, shape.vocabulary_size);  // (L, vocabulary)
}

}  // namespace artel::models
