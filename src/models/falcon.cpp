// SPDX-License-Identifier: Apache-2.0
// falcon: Falcon 7B, 40B and 180B (Almazrouei et al. 2023, arXiv 2311.16867; modeling_falcon.py of
// transformers). Differs from llama in: LayerNorm with bias, attention and feed-forward side by
// side on the same input (each with a norm of its own in 40B and 180B, one norm for both in 7B),
// query, keys and values fused in one weight, GELU (erf form) without a gate, rope over halves of
// the head.
#include <optional>

#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct FalconConfig {
    ModelShape shape;
    HeadShape heads;
    std::uint32_t ffn_width = 0;
    RopeSettings rope;
    float norm_epsilon = 0;
};

Result<FalconConfig> read_config(ConfigReader& reader) {
    FalconConfig config;
    config.shape = read_shape(reader);
    config.shape.state_groups = {{.kind = graph::StateKind::Paged}};
    config.heads = read_heads(reader, config.shape.width);
    config.ffn_width = reader.count("feed_forward_length");
    config.rope = read_rope(reader, config.heads.key_dim);
    config.norm_epsilon = reader.positive("attention.layer_norm_epsilon");
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const FalconConfig& config) {
    return embed(g, config.shape);
}

/// By NAME.weight and NAME.bias. (rows, width), the same
Tensor layer_norm(GraphBuilder& g, const FalconConfig& config, const std::string& name, Tensor x) {
    const Tensor weight = g.vector(name + ".weight", config.shape.width);
    std::optional<Tensor> bias;
    if (g.has_weight(name + ".bias")) bias = g.vector(name + ".bias", config.shape.width);
    return g.layer_norm(x, weight, bias, config.norm_epsilon);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const FalconConfig& config, Tensor x, std::uint32_t layer) {
    HeadRows rows = project_fused_heads(g, layer, config.heads, x);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, config.heads, rows);  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const FalconConfig& config, Tensor x, std::uint32_t i) {
    const Tensor h = layer_norm(g, config, layer_tensor(i, "attn_norm"), x);  // (R, width)
    const bool has_two_norms = g.has_weight(layer_tensor(i, "attn_norm_2.weight"));
    const Tensor attended =  // (R, width)
        has_two_norms ? layer_norm(g, config, layer_tensor(i, "attn_norm_2"), x) : h;
    const Tensor mixed = attention_block(g, config, attended, i);                 // (R, width)
    const Tensor up = linear(g, layer_tensor(i, "ffn_up"), h, config.ffn_width);  // (R, hidden)
    const Tensor active = g.activate(graph::ActivationKind::GeluErf, up);         // (R, hidden)
    const Tensor down = linear(g, layer_tensor(i, "ffn_down"), active, config.shape.width);
    return g.add(x, g.add(mixed, down));
}

Tensor output(GraphBuilder& g, const FalconConfig& config, Tensor x) {
    return logits(g, config.shape, layer_norm(g, config, "output_norm", g.select_rows(x)));
}

constexpr ArchitectureFunctions<FalconConfig> kFalcon{"falcon", read_config, input, layer, output};

}  // namespace

Architecture falcon_architecture() {
    return {kFalcon.name,
            [](const gguf::Metadata& metadata) { return open_with(kFalcon, metadata); }};
}

}  // namespace artel::models
