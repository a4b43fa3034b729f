// SPDX-License-Identifier: Apache-2.0
// llama: Llama 1 to 3, Mistral, SmolLM2 and many more. Grouped-query attention, RMS norm before
// each half, SiLU-gated feed-forward, rope over neighbouring pairs. Optional: biases, a tied head,
// rope_freqs.weight (the frequency factors of Llama 3.1 and later), linear rope stretching.
#include <optional>

#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

Result<DenseConfig> read_config(ConfigReader& reader) {
    const DenseConfig config = read_dense(reader);
    const std::uint32_t experts = reader.count_or_none("expert_count");
    reader.expect(experts == 0,
                  unimplemented("{} is {}: llama with experts (Mixtral) is not supported yet",
                                reader.key("expert_count"), experts));
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const DenseConfig& config) {
    return embed(g, config.shape);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const DenseConfig& config, Tensor x, std::uint32_t layer) {
    std::optional<Tensor> factors;
    if (g.has_weight("rope_freqs.weight"))
        factors = g.vector("rope_freqs.weight", config.rope.dim / 2);
    HeadRows rows = project_heads(g, layer, config.heads, x);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Interleaved, rows, factors);
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

constexpr ArchitectureFunctions<DenseConfig> kLlama{"llama", read_config, input, layer, output};

}  // namespace

Architecture llama_architecture() {
    return {kLlama.name,
            [](const gguf::Metadata& metadata) { return open_with(kLlama, metadata); }};
}

}  // namespace artel::models
