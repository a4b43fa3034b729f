// SPDX-License-Identifier: Apache-2.0
// deepseek2: DeepSeek-V2, V3, R1 and Kimi K2 (DeepSeek-AI 2024, arXiv 2405.04434 and 2412.19437;
// modeling_deepseek_v3.py of transformers). Differs from llama in: latent attention (MLA) in its
// absorbed form, dense layers first and then experts with a shared one beside them, chosen within
// the best groups, and YaRN.
// MLA: keys and values of all heads are projections of one latent vector of kv_lora_rank columns,
// beside a key part of rope.dimension_count columns that all heads share. Since score = query *
// (k_b latent) = (k_b^T query) * latent, the query goes through k_b instead, attention has one kv
// head whose values are the latent columns of its keys, and v_b comes after the softmax. So the
// state of a position is the latent vector and the turned part, whatever the number of heads.
#include <cmath>

#include "models/architecture.hpp"
#include "models/blocks.hpp"

namespace artel::models {

namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct DeepSeek2Config {
    ModelShape shape;
    HeadShape heads;  // as the state sees it: one kv head; keys are latent and turned columns
    RopeSettings rope;
    std::uint32_t query_rank = 0;  // 0: queries are projected at once
    std::uint32_t latent = 0;      // columns of the latent vector
    std::uint32_t plain_dim = 0;   // columns of a query head that are not turned
    std::uint32_t value_dim = 0;   // of a head, after v_b
    float attention_scale = 0;
    DenseThenExperts ffn;
    float norm_epsilon = 0;
};

void read_attention(ConfigReader& reader, DeepSeek2Config& config) {
    config.query_rank = reader.count_or_none("attention.q_lora_rank");
    config.latent = reader.count("attention.kv_lora_rank");
    const std::uint32_t query_dim = reader.count("attention.key_length_mla");
    config.value_dim = reader.count("attention.value_length_mla");
    config.rope = read_rope(reader, query_dim);
    reader.expect(config.rope.dim < query_dim,
                  invalid_argument("{} is {}, expected below the head's {} columns",
                                   reader.key("rope.dimension_count"), config.rope.dim, query_dim));
    config.plain_dim = query_dim > config.rope.dim ? query_dim - config.rope.dim : 1;
    config.heads = {.head_count = reader.count("attention.head_count"),
                    .kv_head_count = 1,
                    .key_dim = config.latent + config.rope.dim,
                    .value_dim = config.latent};
    // YaRN's magnitude is in the scale of the scores here, of which only a part is turned.
    config.rope.magnitude = 1;
    const float multiplier = reader.positive_or_none("rope.scaling.yarn_log_multiplier");
    const float magnitude = graph::yarn_magnitude(1 / config.rope.frequency_scale, multiplier);
    config.attention_scale = magnitude * magnitude / std::sqrt(static_cast<float>(query_dim));
}

Result<DeepSeek2Config> read_config(ConfigReader& reader) {
    DeepSeek2Config config;
    config.shape = read_shape(reader);
    leave_out_predictors(reader, config.shape);
    config.shape.state_groups = {{.kind = graph::StateKind::Paged}};
    read_attention(reader, config);
    config.ffn = read_dense_then_experts(reader, graph::ExpertScore::Softmax);
    config.norm_epsilon = read_norm_epsilon(reader);
    ARTEL_TRY(reader.error());
    return config;
}

Tensor input(GraphBuilder& g, const DeepSeek2Config& config) {
    return embed(g, config.shape);
}

/// Turns the shared part of keys or queries. (R, head_count * rope dim), the same
Tensor turn(GraphBuilder& g, const DeepSeek2Config& config, Tensor x, std::uint32_t head_count) {
    return g.rope(x, {.head_count = head_count,
                      .head_dim = config.rope.dim,
                      .rope_dim = config.rope.dim,
                      .style = graph::RopeStyle::Interleaved,
                      .base = config.rope.base,
                      .frequency_scale = config.rope.frequency_scale,
                      .ramp = config.rope.ramp,
                      .magnitude = config.rope.magnitude,
                      .factors = std::nullopt});
}

/// (R, width) -> (R, heads * (latent + rope dim))
Tensor query_of(GraphBuilder& g, const DeepSeek2Config& config, Tensor x, std::uint32_t layer) {
    const std::uint32_t heads = config.heads.head_count;
    const std::uint32_t rope_dim = config.rope.dim;
    const std::uint64_t columns = std::uint64_t{heads} * (config.plain_dim + rope_dim);
    Tensor query;  // (R, heads * (plain + rope dim))
    if (config.query_rank == 0) {
        query = linear(g, layer_tensor(layer, "attn_q"), x, columns);
    } else {
        Tensor low = linear(g, layer_tensor(layer, "attn_q_a"), x, config.query_rank);
        low = norm(g, layer_tensor(layer, "attn_q_a_norm.weight"), low, config.query_rank,
                   config.norm_epsilon);  // (R, query rank)
        query = linear(g, layer_tensor(layer, "attn_q_b"), low, columns);
    }
    const Tensor plain = g.slice_heads(query, heads, 0, config.plain_dim);  // (R, heads * plain)
    const Tensor turned =                                                   // (R, heads * rope dim)
        turn(g, config, g.slice_heads(query, heads, config.plain_dim, rope_dim), heads);
    const Tensor k_b = g.weight(layer_tensor(layer, "attn_k_b.weight"),
                                std::uint64_t{heads} * config.latent, config.plain_dim);
    return g.join_heads(g.head_matmul(k_b, plain, heads), turned, heads);
}

/// (R, width) -> (R, width)
Tensor attention_block(GraphBuilder& g, const DeepSeek2Config& config, Tensor x,
                       std::uint32_t layer) {
    const std::uint32_t heads = config.heads.head_count;
    const std::uint32_t latent = config.latent;
    const Tensor kv_a = g.weight(layer_tensor(layer, "attn_kv_a_mqa.weight"),
                                 std::uint64_t{latent} + config.rope.dim, config.shape.width);
    const Tensor values =  // (R, latent)
        norm(g, layer_tensor(layer, "attn_kv_a_norm.weight"),
             g.matmul(g.weight_rows(kv_a, 0, latent), x), latent, config.norm_epsilon);
    const Tensor shared =  // (R, rope dim)
        turn(g, config, g.matmul(g.weight_rows(kv_a, latent, config.rope.dim), x), 1);
    const HeadRows rows{.query = query_of(g, config, x, layer),
                        .keys = g.join_heads(values, shared, 1),
                        .values = values};
    const Tensor mixed =  // (R, heads * latent)
        attend(g, config.heads, rows, {.scale = config.attention_scale, .values_in_keys = true});
    const Tensor v_b = g.weight(layer_tensor(layer, "attn_v_b.weight"),
                                std::uint64_t{heads} * config.value_dim, latent);
    const Tensor lifted = g.head_matmul(v_b, mixed, heads);  // (R, heads * value dim)
    return linear(g, layer_tensor(layer, "attn_output"), lifted, config.shape.width);
}

Tensor layer(GraphBuilder& g, const DeepSeek2Config& config, Tensor x, std::uint32_t i) {
    const auto normed = [&](const char* name, Tensor t) {  // (R, width), the same
        return norm(g, layer_tensor(i, name), t, config.shape.width, config.norm_epsilon);
    };
    x = g.add(x, attention_block(g, config, normed("attn_norm.weight", x), i));  // (R, width)
    return g.add(x, dense_or_routed_ffn(g, i, normed("ffn_norm.weight", x), config.ffn));
}

Tensor output(GraphBuilder& g, const DeepSeek2Config& config, Tensor x) {
    return head(g, config.shape, config.norm_epsilon, x);
}

constexpr ArchitectureFunctions<DeepSeek2Config> kDeepSeek2{"deepseek2", read_config, input, layer,
                                                            output};

}  // namespace

Architecture deepseek2_architecture() {
    return {kDeepSeek2.name,
            [](const gguf::Metadata& metadata) { return open_with(kDeepSeek2, metadata); }};
}

}  // namespace artel::models
