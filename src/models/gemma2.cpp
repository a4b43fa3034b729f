// SPDX-License-Identifier: Apache-2.0
// gemma2: Gemma 2 (Gemma team 2024, arXiv 2408.00118; modeling_gemma2.py of transformers). Differs
// from llama in: embedding times sqrt(width), norms before and after each half, GELU (tanh form)
// gate, rope over halves of the head, soft caps on scores and logits, and a window in every other
// layer, beginning with the first. Norm weights in the file already have their 1 added.
#include <cmath>

#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

constexpr std::uint32_t kFullGroup = 0;
constexpr std::uint32_t kWindowedGroup = 1;
constexpr std::uint32_t kWindowDefault = 4096;
constexpr std::uint32_t kLayersOf27b = 46;  // its attention is scaled by width / heads
constexpr float kScoreCapDefault = 50;
constexpr float kLogitCapDefault = 30;

struct Gemma2Config {
    ModelShape shape;
    HeadShape heads;
    std::uint32_t ffn_width = 0;
    RopeSettings rope;
    float attention_scale = 0;
    float score_cap = 0;  // 0: none
    float logit_cap = 0;  // 0: none
    float norm_epsilon = 0;
};

Result<Gemma2Config> read_config(ConfigReader& reader) {
    Gemma2Config config;
    config.shape = read_shape(reader);
    config.shape.state_groups = {
        {.kind = graph::StateKind::Paged},
        {.kind = graph::StateKind::Windowed,
         .window = reader.count_or("attention.sliding_window", kWindowDefault)}};
    config.heads = read_heads(reader, config.shape.width);
    config.ffn_width = reader.count("feed_forward_length");
    config.rope = read_rope(reader, config.heads.key_dim);
    const std::uint32_t scaled_by = config.shape.layer_count == kLayersOf27b
                                        ? config.shape.width / config.heads.head_count
                                        : config.heads.key_dim;
    config.attention_scale =
        reader.positive_or("attention.scale", 1 / std::sqrt(static_cast<float>(scaled_by)));
    config.score_cap = reader.positive_or("attn_logit_softcapping", kScoreCapDefault);
    config.logit_cap = reader.positive_or("final_logit_softcapping", kLogitCapDefault);
    config.norm_epsilon = read_norm_epsilon(reader);
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const Gemma2Config& config) {
    return embed(g, config.shape, std::sqrt(static_cast<float>(config.shape.width)));
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const Gemma2Config& config, Tensor x, std::uint32_t layer) {
    HeadRows rows = project_heads(g, layer, config.heads, x);
    turn_heads(g, config.heads, config.rope, graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, config.heads, rows,
                                {.group = layer % 2 == 0 ? kWindowedGroup : kFullGroup,
                                 .scale = config.attention_scale,
                                 .softcap = config.score_cap});  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const Gemma2Config& config, Tensor x, std::uint32_t i) {
    const auto normed = [&](const char* name, Tensor t) {  // (R, width), the same
        return norm(g, layer_tensor(i, name), t, config.shape.width, config.norm_epsilon);
    };
    Tensor h = attention_block(g, config, normed("attn_norm.weight", x), i);  // (R, width)
    x = g.add(x, normed("post_attention_norm.weight", h));                    // (R, width)
    h = gated_ffn(g, i, normed("ffn_norm.weight", x), config.ffn_width,
                  graph::GateKind::GeluTanh);  // (R, width)
    return g.add(x, normed("post_ffw_norm.weight", h));
}

Tensor output(GraphBuilder& g, const Gemma2Config& config, Tensor x) {
    return g.soft_cap(head(g, config.shape, config.norm_epsilon, x), config.logit_cap);
}

constexpr ArchitectureFunctions<Gemma2Config> kGemma2{"gemma2", read_config, input, layer, output};

}  // namespace

Architecture gemma2_architecture() {
    return {kGemma2.name,
            [](const gguf::Metadata& metadata) { return open_with(kGemma2, metadata); }};
}

}  // namespace artel::models
