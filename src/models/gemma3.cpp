// SPDX-License-Identifier: Apache-2.0
// gemma3: text part of Gemma 3. Differs from llama in: embedding times sqrt(width), norms of query
// and key heads, norms after each half too, GELU (tanh form) gate, rope over halves of the head,
// and five sliding-window layers, with a rope base of their own, to each full one. The windowed
// layers are a second state group. Norm weights in the file already have their 1 added.
#include <cmath>
#include <vector>

#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

constexpr std::uint32_t kFullGroup = 0;
constexpr std::uint32_t kWindowedGroup = 1;
constexpr std::uint32_t kPatternDefault = 6;  // of so many layers, the last is a full one
constexpr std::uint32_t kLayersOf27b = 62;    // its attention is scaled by width / heads
constexpr float kFullRopeBaseDefault = 1000000;
constexpr float kWindowedRopeBaseDefault = 10000;

struct Gemma3Config {
    ModelShape shape;
    HeadShape heads;
    std::uint32_t ffn_width = 0;
    RopeSettings full_rope;
    RopeSettings windowed_rope;
    std::vector<bool> is_windowed;  // (layers)
    float attention_scale = 0;
    float norm_epsilon = 0;
    float logit_cap = 0;  // 0: none
};

/// attention.sliding_window_pattern is absent, a period, or a flag for each layer.
Result<std::vector<bool>> read_window_pattern(const ConfigReader& reader,
                                              std::uint32_t layer_count) {
    const std::string key = reader.key("attention.sliding_window_pattern");
    const gguf::Value* value = reader.metadata().find_value(key);
    if (value != nullptr && value->is_array()) {
        ARTEL_ASSIGN(std::vector<bool> flags, reader.metadata().get_each<bool>(key, layer_count));
        return flags;
    }
    ARTEL_ASSIGN(const auto found, reader.metadata().find<std::uint32_t>(key));
    const std::uint32_t period = found.value_or(kPatternDefault);
    if (period == 0) return invalid_argument("{} is 0, expected at least 1", key);
    std::vector<bool> is_windowed(layer_count);
    for (std::uint32_t i = 0; i < layer_count; ++i) is_windowed[i] = (i + 1) % period != 0;
    return is_windowed;
}

float read_attention_scale(ConfigReader& reader, const Gemma3Config& config) {
    const bool is_27b = config.shape.layer_count == kLayersOf27b;
    const std::uint32_t scaled_by =
        is_27b ? config.shape.width / config.heads.head_count : config.heads.key_dim;
    return reader.positive_or("attention.scale", 1 / std::sqrt(static_cast<float>(scaled_by)));
}

Result<Gemma3Config> read_config(ConfigReader& reader) {
    Gemma3Config config;
    config.shape = read_shape(reader);
    config.shape.state_groups = {{.kind = graph::StateKind::Paged}};
    config.heads = read_heads(reader, config.shape.width);
    config.ffn_width = reader.count("feed_forward_length");
    const std::uint32_t rope_dim = read_rope_dim(reader, config.heads.key_dim);
    config.full_rope = {.dim = rope_dim,
                        .base = reader.positive_or("rope.freq_base", kFullRopeBaseDefault),
                        .frequency_scale = read_linear_rope_scale(reader)};
    config.windowed_rope = {
        .dim = rope_dim,
        .base = reader.positive_or("rope.freq_base_swa", kWindowedRopeBaseDefault)};
    config.attention_scale = read_attention_scale(reader, config);
    config.norm_epsilon = read_norm_epsilon(reader);
    config.logit_cap = reader.positive_or_none("final_logit_softcapping");
    const std::uint32_t window = reader.count_or_none("attention.sliding_window");
    ARTEL_TRY(reader.error());
    config.is_windowed.assign(config.shape.layer_count, false);
    if (window == 0) return config;
    ARTEL_ASSIGN(config.is_windowed, read_window_pattern(reader, config.shape.layer_count));
    config.shape.state_groups.push_back({.kind = graph::StateKind::Windowed, .window = window});
    return config;
}

Tensor input(GraphBuilder& g, const Gemma3Config& config) {
    return embed(g, config.shape, std::sqrt(static_cast<float>(config.shape.width)));
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const Gemma3Config& config, Tensor x, std::uint32_t layer) {
    const bool is_windowed = config.is_windowed[layer];
    HeadRows rows = project_heads(g, layer, config.heads, x);
    norm_heads(g, layer, config.heads, config.norm_epsilon, rows);
    turn_heads(g, config.heads, is_windowed ? config.windowed_rope : config.full_rope,
               graph::RopeStyle::Halves, rows);
    const Tensor mixed = attend(g, config.heads, rows,
                                {.group = is_windowed ? kWindowedGroup : kFullGroup,
                                 .scale = config.attention_scale});  // (R, heads * value_dim)
    return linear(g, layer_tensor(layer, "attn_output"), mixed, config.shape.width);
}

Tensor layer(GraphBuilder& g, const Gemma3Config& config, Tensor x, std::uint32_t i) {
    const auto normed = [&](const char* name, Tensor t) {  // (R, width), the same
        return norm(g, layer_tensor(i, name), t, config.shape.width, config.norm_epsilon);
    };
    Tensor h = attention_block(g, config, normed("attn_norm.weight", x), i);  // (R, width)
    x = g.add(x, normed("post_attention_norm.weight", h));                    // (R, width)
    h = gated_ffn(g, i, normed("ffn_norm.weight", x), config.ffn_width,
                  graph::GateKind::GeluTanh);  // (R, width)
    return g.add(x, normed("post_ffw_norm.weight", h));
}

Tensor output(GraphBuilder& g, const Gemma3Config& config, Tensor x) {
    const Tensor logits = head(g, config.shape, config.norm_epsilon, x);  // (L, vocabulary)
    return config.logit_cap == 0 ? logits : g.soft_cap(logits, config.logit_cap);
}

constexpr ArchitectureFunctions<Gemma3Config> kGemma3{"gemma3", read_config, input, layer, output};

}  // namespace

Architecture gemma3_architecture() {
    return {kGemma3.name,
            [](const gguf::Metadata& metadata) { return open_with(kGemma3, metadata); }};
}

}  // namespace artel::models
