// SPDX-License-Identifier: Apache-2.0
// qwen3moe: Qwen3 with experts, 30B-A3B and 235B-A22B (Qwen3 technical report 2025, arXiv
// 2505.09388; modeling_qwen3_moe.py of transformers). The attention of qwen3; in place of the
// feed-forward, routed experts: softmax over all, the best few, their weights divided by their sum.
#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct Qwen3MoeConfig {
    ModelShape shape;
    HeadShape heads;
    RopeSettings rope;
    MoeSettings moe;
    float norm_epsilon = 0;
};

Result<Qwen3MoeConfig> read_config(ConfigReader& reader) {
    Qwen3MoeConfig config;
    config.shape = read_shape(reader);
    config.shape.state_groups = {{.kind = graph::StateKind::Paged}};
    config.heads = read_heads(reader, config.shape.width);
    config.rope = read_rope(reader, config.heads.key_dim);
    config.moe = read_moe(reader);
    config.moe.routing.normalises = true;
    config.norm_epsilon = read_norm_epsilon(reader);
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const Qwen3MoeConfig& config) {
    return embed(g, config.shape);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const Qwen3MoeConfig& config, Tensor x,
                       std::uint32_t layer) {
    HeadRows rows = project_heads(g, layer, config.heads, x);
    norm_heads(g, layer, config.heads, config.norm_epsilon, rows);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, config.heads, rows);  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const Qwen3MoeConfig& config, Tensor x, std::uint32_t i) {
    const std::uint64_t width = config.shape.width;
    const float epsilon = config.norm_epsilon;
    Tensor h = norm(g, layer_tensor(i, "attn_norm.weight"), x, width, epsilon);  // (R, width)
    x = g.add(x, attention_block(g, config, h, i));                              // (R, width)
    h = norm(g, layer_tensor(i, "ffn_norm.weight"), x, width, epsilon);          // (R, width)
    return g.add(x, routed_ffn(g, i, h, config.moe));
}

Tensor output(GraphBuilder& g, const Qwen3MoeConfig& config, Tensor x) {
    return head(g, config.shape, config.norm_epsilon, x);
}

constexpr ArchitectureFunctions<Qwen3MoeConfig> kQwen3Moe{"qwen3moe", read_config, input, layer,
                                                          output};

}  // namespace

Architecture qwen3moe_architecture() {
    return {kQwen3Moe.name,
            [](const gguf::Metadata& metadata) { return open_with(kQwen3Moe, metadata); }};
}

}  // namespace artel::models
