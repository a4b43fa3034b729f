// SPDX-License-Identifier: Apache-2.0
// gpt-oss: gpt-oss-20b and 120b (OpenAI 2025, arXiv 2508.10925; modeling_gpt_oss.py of
// transformers). Differs from llama in: biases everywhere, a sink in each head's softmax, a window
// in every other layer, beginning with the first, YaRN, rope over halves of the head, and experts
// with a clamped gate: the best few by their logits, weighed by a softmax over those.
#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct GptOssConfig {
    ModelShape shape;
    HeadShape heads;
    RopeSettings rope;
    MoeSettings moe;
    float norm_epsilon = 0;
};

Result<GptOssConfig> read_config(ConfigReader& reader) {
    GptOssConfig config;
    config.shape = read_shape(reader);
    config.shape.state_groups = {
        {.kind = graph::StateKind::Paged},
        {.kind = graph::StateKind::Windowed, .window = reader.count("attention.sliding_window")}};
    config.heads = read_heads(reader, config.shape.width);
    config.rope = read_rope(reader, config.heads.key_dim);
    config.moe = read_moe(reader);
    config.moe.routing.score = graph::ExpertScore::ChosenSoftmax;
    config.moe.kind = graph::GateKind::ClampedSwish;
    config.norm_epsilon = read_norm_epsilon(reader);
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const GptOssConfig& config) {
    return embed(g, config.shape);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const GptOssConfig& config, Tensor x, std::uint32_t layer) {
    constexpr std::uint32_t kFullGroup = 0;
    constexpr std::uint32_t kWindowedGroup = 1;
    const Tensor sinks =
        g.vector(layer_tensor(layer, "attn_sinks.weight"), config.heads.head_count);
    HeadRows rows = project_heads(g, layer, config.heads, x);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, config.heads, rows,
                                {.group = layer % 2 == 0 ? kWindowedGroup : kFullGroup,
                                 .sinks = sinks});  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const GptOssConfig& config, Tensor x, std::uint32_t i) {
    const auto normed = [&](const char* name, Tensor t) {  // (R, width), the same
        return norm(g, layer_tensor(i, name), t, config.shape.width, config.norm_epsilon);
    };
    x = g.add(x, attention_block(g, config, normed("attn_norm.weight", x), i));  // (R, width)
    return g.add(x, routed_ffn(g, i, normed("post_attention_norm.weight", x), config.moe));
}

Tensor output(GraphBuilder& g, const GptOssConfig& config, Tensor x) {
    return head(g, config.shape, config.norm_epsilon, x);
}

constexpr ArchitectureFunctions<GptOssConfig> kGptOss{"gpt-oss", read_config, input, layer, output};

}  // namespace

Architecture gpt_oss_architecture() {
    return {kGptOss.name,
            [](const gguf::Metadata& metadata) { return open_with(kGptOss, metadata); }};
}

}  // namespace artel::models
