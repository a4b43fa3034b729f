// SPDX-License-Identifier: Apache-2.0
// Blocks that several architectures share. Each has few parameters: where one would need a flag for
// a single model, that model writes its own in its file. Shapes: R rows of the step, L rows that
// want logits.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graph_builder.hpp"
#include "models/architecture.hpp"

namespace artel::models {

/// Takes the blocks that predict further tokens (nextn_predict_layers, the last of block_count) out
/// of the layers: nothing in them takes part in the answer.
void leave_out_predictors(ConfigReader& reader, ModelShape& shape);

/// Query heads share key-value heads in runs of head_count / kv_head_count.
struct HeadShape {
    std::uint32_t head_count = 0;
    std::uint32_t kv_head_count = 0;
    std::uint32_t key_dim = 0;
    std::uint32_t value_dim = 0;
};

/// Reads attention.head_count, head_count_kv, key_length and value_length.
HeadShape read_heads(ConfigReader& reader, std::uint32_t width);
/// Reads rope.dimension_count (default: the key length): even, not above the key length.
std::uint32_t read_rope_dim(ConfigReader& reader, std::uint32_t key_dim);
/// Reads rope.scaling.*: 1 / factor of linear stretching, 1 where there is none. Other kinds of
/// scaling are an error.
float read_linear_rope_scale(ConfigReader& reader);

/// How query and key heads are turned.
struct RopeSettings {
    std::uint32_t dim = 0;
    float base = 10000;
    float frequency_scale = 1;
    graph::YarnRamp ramp = {};
    float magnitude = 1;
};
/// Reads rope.dimension_count, rope.freq_base and rope.scaling.*: none, linear, yarn, longrope (of
/// which the factors are tensors and only attn_factor is a setting). Others are an error.
RopeSettings read_rope(ConfigReader& reader, std::uint32_t key_dim);
/// Reads attention.layer_norm_rms_epsilon.
float read_norm_epsilon(ConfigReader& reader);

/// What a decoder without experts reads from its file.
struct DenseConfig {
    ModelShape shape;  // one paged state group
    HeadShape heads;
    std::uint32_t ffn_width = 0;
    RopeSettings rope;
    float norm_epsilon = 0;
};
/// By the readers above, and feed_forward_length.
DenseConfig read_dense(ConfigReader& reader);

/// "blk.3.ffn_up.weight" for (3, "ffn_up.weight").
inline std::string layer_tensor(std::uint32_t layer, std::string_view name) {
    return fmt::format("blk.{}.{}", layer, name);
}

/// x * W^T + b: NAME.weight (columns, columns of x), and NAME.bias if the file has it.
/// (R, n) -> (R, columns)
graph::Tensor linear(graph::GraphBuilder& g, const std::string& name, graph::Tensor x,
                     std::uint64_t columns);

/// RMS norm by NAME (width); of each head where width is that of a head.
graph::Tensor norm(graph::GraphBuilder& g, const std::string& name, graph::Tensor x,
                   std::uint64_t width, float epsilon);

/// down(f(gate(x)) * up(x)). (R, width) -> (R, width)
graph::Tensor gated_ffn(graph::GraphBuilder& g, std::uint32_t layer, graph::Tensor x,
                        std::uint64_t hidden, graph::GateKind kind);

/// Routed experts, of which each row uses some.
struct MoeSettings {
    graph::Routing routing;
    std::uint32_t hidden = 0;  // columns between the matrices of one expert
    graph::GateKind kind = graph::GateKind::Silu;
};
/// Reads expert_count, expert_used_count and expert_feed_forward_length; the architecture says the
/// rest of the routing, or takes it from the file by read_routing.
MoeSettings read_moe(ConfigReader& reader);
/// Reads expert_gating_func, expert_group_count, expert_group_used_count, expert_weights_norm and
/// expert_weights_scale. A file without the first leaves the kind of score as it is.
void read_routing(ConfigReader& reader, graph::Routing& routing);
/// Routed by ffn_gate_inp and, where the file has it, exp_probs_b. (R, width) -> (R, width)
graph::Tensor routed_ffn(graph::GraphBuilder& g, std::uint32_t layer, graph::Tensor x,
                         const MoeSettings& moe);
/// The expert that every row uses: ffn_gate_shexp and so on. (R, width) -> (R, width)
graph::Tensor shared_ffn(graph::GraphBuilder& g, std::uint32_t layer, graph::Tensor x,
                         std::uint64_t hidden);

/// Dense layers first, then routed experts with shared ones beside them.
struct DenseThenExperts {
    std::uint32_t ffn_width = 0;     // of dense layers
    std::uint32_t dense_layers = 0;  // the first ones
    std::uint32_t shared_width = 0;  // of the shared experts together; 0: none
    MoeSettings moe;
};
/// By read_moe and read_routing; also feed_forward_length, leading_dense_block_count and
/// expert_shared_count. A file that does not say how experts are scored means `score`.
DenseThenExperts read_dense_then_experts(ConfigReader& reader, graph::ExpertScore score);
/// What the layer has. (R, width) -> (R, width)
graph::Tensor dense_or_routed_ffn(graph::GraphBuilder& g, std::uint32_t layer, graph::Tensor x,
                                  const DenseThenExperts& settings);

/// Query, keys and values of the rows of a step:
/// (R, heads * key_dim), (R, kv_heads * key_dim), (R, kv_heads * value_dim)
struct HeadRows {
    graph::Tensor query;
    graph::Tensor keys;
    graph::Tensor values;
};
/// By attn_q, attn_k and attn_v of the layer. (R, width) -> HeadRows
HeadRows project_heads(graph::GraphBuilder& g, std::uint32_t layer, const HeadShape& heads,
                       graph::Tensor x);
/// By the rows of attn_qkv, which holds the three one after another. (R, width) -> HeadRows
HeadRows project_fused_heads(graph::GraphBuilder& g, std::uint32_t layer, const HeadShape& heads,
                             graph::Tensor x);
/// Norm of each query head by attn_q_norm and each key head by attn_k_norm.
void norm_heads(graph::GraphBuilder& g, std::uint32_t layer, const HeadShape& heads, float epsilon,
                HeadRows& rows);
/// Turns query and keys.
void turn_heads(graph::GraphBuilder& g, const HeadShape& heads, const RopeSettings& rope,
                graph::RopeStyle style, HeadRows& rows,
                const std::optional<graph::Tensor>& factors = std::nullopt);

struct AttendOptions {
    std::uint32_t group = 0;
    float scale = 0;    // 0: 1 / sqrt(key_dim)
    float softcap = 0;  // 0: none
    std::optional<graph::Tensor> sinks = std::nullopt;
    bool values_in_keys = false;  // values are the first columns of the keys, which are kept once
};
/// Keeps keys and values in the state group and attends to all of it that the row sees.
/// -> (R, heads * value_dim)
graph::Tensor attend(graph::GraphBuilder& g, const HeadShape& heads, const HeadRows& rows,
                     const AttendOptions& options = {});

/// embd of the tokens, times `scale`. -> (R, width)
graph::Tensor embed(graph::GraphBuilder& g, const ModelShape& shape, float scale = 1);
/// The head, which is the embedding where the file has no output.weight.
/// (L, width) -> (L, vocabulary)
graph::Tensor logits(graph::GraphBuilder& g, const ModelShape& shape, graph::Tensor x);
/// Norm and head of the rows that want logits. (R, width) -> (L, vocabulary)
graph::Tensor head(graph::GraphBuilder& g, const ModelShape& shape, float epsilon, graph::Tensor x);

}  // namespace artel::models
