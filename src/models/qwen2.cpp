// SPDX-License-Identifier: Apache-2.0
// qwen2: Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv 2407.10671; modeling_qwen2.py of transformers).
// Differs from llama in: rope over halves of the head, biases of query, keys and values (any linear
// takes the bias that its file has), YaRN where a file stretches the context.
#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

Result<DenseConfig> read_config(ConfigReader& reader) {
    const DenseConfig config = read_dense(reader);
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const DenseConfig& config) {
    return embed(g, config.shape);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const DenseConfig& config, Tensor x, std::uint32_t layer) {
    HeadRows rows = project_heads(g, layer, config.heads, x);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, config.heads, rows);  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const DenseConfig& config, Tensor x, std::uint32_t i) {
    const std::uint64_t width = config.shape.width;
    const float epsilon = config.norm_epsilon;
    Tensor h = norm(g, layer_tensor(i, "attn_norm.weight"), x, width, epsilon);  // (R, width)
    x = g.add(x, attention_block(g, config, h, i));                              // (R, width)
    h = norm(g, layer_tensor(i, "ffn_norm.weight"), x, width, epsilon);          // (R, width)
    return g.add(x, gated_ffn(g, i, h, config.ffn_width, graph::GateKind::Silu));
}

Tensor output(GraphBuilder& g, const DenseConfig& config, Tensor x) {
    return head(g, config.shape, config.norm_epsilon, x);
}

constexpr ArchitectureFunctions<DenseConfig> kQwen2{"qwen2", read_config, input, layer, output};

}  // namespace

Architecture qwen2_architecture() {
    return {kQwen2.name,
            [](const gguf::Metadata& metadata) { return open_with(kQwen2, metadata); }};
}

}  // namespace artel::models
