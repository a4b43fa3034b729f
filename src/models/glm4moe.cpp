// SPDX-License-Identifier: Apache-2.0
// glm4moe: GLM-4.5, 4.6 and 4.7 with experts (GLM-4.5 team 2025, arXiv 2508.06471;
// modeling_glm4_moe.py of transformers). Differs from llama in: biases of query, keys and values,
// norms of query and key heads where the file has them, rope over halves of a part of the head,
// dense layers first and then experts: sigmoid scores, a bias that counts for the choice alone,
// weights divided by their sum and scaled, and a shared expert beside them. Blocks for the
// prediction of further tokens (nextn_predict_layers, the last ones that block_count counts) are no
// layers here: they take no part in the answer.
#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct Glm4MoeConfig {
    ModelShape shape;
    HeadShape heads;
    RopeSettings rope;
    DenseThenExperts ffn;
    float norm_epsilon = 0;
};

Result<Glm4MoeConfig> read_config(ConfigReader& reader) {
    Glm4MoeConfig config;
    config.shape = read_shape(reader);
    leave_out_predictors(reader, config.shape);
    config.shape.state_groups = {{.kind = graph::StateKind::Paged}};
    config.heads = read_heads(reader, config.shape.width);
    config.rope = read_rope(reader, config.heads.key_dim);
    config.ffn = read_dense_then_experts(reader, graph::ExpertScore::Sigmoid);
    config.norm_epsilon = read_norm_epsilon(reader);
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const Glm4MoeConfig& config) {
    return embed(g, config.shape);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const Glm4MoeConfig& config, Tensor x,
                       std::uint32_t layer) {
    HeadRows rows = project_heads(g, layer, config.heads, x);
    if (g.has_weight(layer_tensor(layer, "attn_q_norm.weight")))
        norm_heads(g, layer, config.heads, config.norm_epsilon, rows);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, config.heads, rows);  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const Glm4MoeConfig& config, Tensor x, std::uint32_t i) {
    const auto normed = [&](const char* name, Tensor t) {  // (R, width), the same
        return norm(g, layer_tensor(i, name), t, config.shape.width, config.norm_epsilon);
    };
    x = g.add(x, attention_block(g, config, normed("attn_norm.weight", x), i));  // (R, width)
    return g.add(x, dense_or_routed_ffn(g, i, normed("post_attention_norm.weight", x), config.ffn));
}

Tensor output(GraphBuilder& g, const Glm4MoeConfig& config, Tensor x) {
    return head(g, config.shape, config.norm_epsilon, x);
}

constexpr ArchitectureFunctions<Glm4MoeConfig> kGlm4Moe{"glm4moe", read_config, input, layer,
                                                        output};

}  // namespace

Architecture glm4moe_architecture() {
    return {kGlm4Moe.name,
            [](const gguf::Metadata& metadata) { return open_with(kGlm4Moe, metadata); }};
}

}  // namespace artel::models
