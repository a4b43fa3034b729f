// SPDX-License-Identifier: Apache-2.0
// phi3: Phi-3, Phi-3.5 and Phi-4-mini (Abdin et al. 2024, arXiv 2404.14219; modeling_phi3.py of
// transformers). Differs from llama in: query, keys and values fused in one weight, gate and up in
// another, rope over halves of the head, a window over all layers of the short-context models, and
// LongRoPE factors in the file of the long-context ones. Those come as two sets; which one holds
// follows from the model's context length, never from a prompt's, so that a sequence's state stays
// true as it grows.
#include <optional>

#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct Phi3Config {
    ModelShape shape;
    HeadShape heads;
    std::uint32_t ffn_width = 0;
    RopeSettings rope;
    float norm_epsilon = 0;
    const char* rope_factors = nullptr;  // a tensor; null: none
};

Result<Phi3Config> read_config(ConfigReader& reader) {
    Phi3Config config;
    config.shape = read_shape(reader);
    config.heads = read_heads(reader, config.shape.width);
    config.ffn_width = reader.count("feed_forward_length");
    config.rope = read_rope(reader, config.heads.key_dim);
    const std::uint32_t context = config.shape.context_length;
    const std::uint32_t original = reader.count_or("rope.scaling.original_context_length", context);
    config.rope_factors =
        context > original ? "rope_factors_long.weight" : "rope_factors_short.weight";
    // Of models that were trained with it; the settings of others name a window beyond the context.
    const std::uint32_t window = reader.count_or_none("attention.sliding_window");
    if (window > 0 && window < context)
        config.shape.state_groups = {{.kind = graph::StateKind::Windowed, .window = window}};
    else
        config.shape.state_groups = {{.kind = graph::StateKind::Paged}};
    config.norm_epsilon = read_norm_epsilon(reader);
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const Phi3Config& config) {
    return embed(g, config.shape);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const Phi3Config& config, Tensor x, std::uint32_t layer) {
    std::optional<Tensor> factors;
    if (g.has_weight(config.rope_factors))
        factors = g.vector(config.rope_factors, config.rope.dim / 2);
    HeadRows rows = project_fused_heads(g, layer, config.heads, x);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Halves, rows, factors);
    const Tensor mixed = attend(g, config.heads, rows);  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

/// The first half of ffn_up's rows are the gate. (R, width) -> (R, width)
Tensor ffn_block(GraphBuilder& g, const Phi3Config& config, Tensor x, std::uint32_t layer) {
    const std::uint64_t hidden = config.ffn_width;
    const Tensor fused =
        g.weight(layer_tensor(layer, "ffn_up.weight"), 2 * hidden, config.shape.width);
    const Tensor gate = g.matmul(g.weight_rows(fused, 0, hidden), x);          // (R, hidden)
    const Tensor up = g.matmul(g.weight_rows(fused, hidden, hidden), x);       // (R, hidden)
    const Tensor gated = g.gated_activation(graph::GateKind::Silu, gate, up);  // (R, hidden)
    return linear(g, layer_tensor(layer, "ffn_down"), gated, config.shape.width);
}

Tensor layer(GraphBuilder& g, const Phi3Config& config, Tensor x, std::uint32_t i) {
    const std::uint64_t width = config.shape.width;
    const float epsilon = config.norm_epsilon;
    Tensor h = norm(g, layer_tensor(i, "attn_norm.weight"), x, width, epsilon);  // (R, width)
    x = g.add(x, attention_block(g, config, h, i));                              // (R, width)
    h = norm(g, layer_tensor(i, "ffn_norm.weight"), x, width, epsilon);          // (R, width)
    return g.add(x, ffn_block(g, config, h, i));
}

Tensor output(GraphBuilder& g, const Phi3Config& config, Tensor x) {
    return head(g, config.shape, config.norm_epsilon, x);
}

constexpr ArchitectureFunctions<Phi3Config> kPhi3{"phi3", read_config, input, layer, output};

}  // namespace

Architecture phi3_architecture() {
    return {kPhi3.name, [](const gguf::Metadata& metadata) { return open_with(kPhi3, metadata); }};
}

}  // namespace artel::models
