// SPDX-License-Identifier: Apache-2.0
// Blocks that several architectures share. Each has few parameters: where one would need a flag for
// a single model, that model writes its own in its file. Shapes: R rows of the step, L rows that
// want logits.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/graph_builder.hpp"
#include "models/architecture.hpp"

namespace artel::models {

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
/// Reads attention.layer_norm_rms_epsilon.
float read_norm_epsilon(ConfigReader& reader);

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

/// Keeps keys and values in state group `group` and attends to all of it that the row sees.
/// query (R, heads * key_dim), keys (R, kv_heads * key_dim), values (R, kv_heads * value_dim)
/// -> (R, heads * value_dim)
graph::Tensor attend(graph::GraphBuilder& g, std::uint32_t group, const HeadShape& heads,
                     float scale, graph::Tensor query, graph::Tensor keys, graph::Tensor values);

/// Norm and head, which is the embedding where the file has no output.weight.
/// (R, width) -> (L, vocabulary)
graph::Tensor head(graph::GraphBuilder& g, const ModelShape& shape, float epsilon, graph::Tensor x);

}  // namespace artel::models
