// SPDX-License-Identifier: Apache-2.0
// olmo2: OLMo 2 (OLMo team 2024, arXiv 2501.00656; modeling_olmo2.py of transformers). Differs from
// llama in: norms after each half instead of before, norms of query and keys over their whole
// width, rope over halves of the head.
#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

Result<DenseConfig> read_config(ConfigReader& reader) {
    const DenseConfig config = read_dense(reader);
    const std::uint32_t window = reader.count_or_none("attention.sliding_window");
    reader.expect(window == 0,
                  unimplemented("{} is {}: olmo2 with windows (OLMo 3) is not supported yet",
                                reader.key("attention.sliding_window"), window));
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const DenseConfig& config) {
    return embed(g, config.shape);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const DenseConfig& config, Tensor x, std::uint32_t layer) {
    const HeadShape& heads = config.heads;
    HeadRows rows = project_heads(g, layer, heads, x);
    rows.query = norm(g, layer_tensor(layer, "attn_q_norm.weight"), rows.query,
                      std::uint64_t{heads.head_count} * heads.key_dim, config.norm_epsilon);
    rows.keys = norm(g, layer_tensor(layer, "attn_k_norm.weight"), rows.keys,
                     std::uint64_t{heads.kv_head_count} * heads.key_dim, config.norm_epsilon);
    turn_heads(g, heads, config.rope, graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, heads, rows);  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const DenseConfig& config, Tensor x, std::uint32_t i) {
    const auto normed = [&](const char* name, Tensor t) {  // (R, width), the same
        return norm(g, layer_tensor(i, name), t, config.shape.width, config.norm_epsilon);
    };
    Tensor h = attention_block(g, config, x, i);                      // (R, width)
    x = g.add(x, normed("post_attention_norm.weight", h));            // (R, width)
    h = gated_ffn(g, i, x, config.ffn_width, graph::GateKind::Silu);  // (R, width)
    return g.add(x, normed("post_ffw_norm.weight", h));
}

Tensor output(GraphBuilder& g, const DenseConfig& config, Tensor x) {
    return head(g, config.shape, config.norm_epsilon, x);
}

constexpr ArchitectureFunctions<DenseConfig> kOlmo2{"olmo2", read_config, input, layer, output};

}  // namespace

Architecture olmo2_architecture() {
    return {kOlmo2.name,
            [](const gguf::Metadata& metadata) { return open_with(kOlmo2, metadata); }};
}

}  // namespace artel::models
