// SPDX-License-Identifier: Apache-2.0
// THE list of ops: one plain struct each, and Op, the variant of all. A backend visits them, so a
// forgotten op does not compile. GraphBuilder has checked every shape and format before an op
// exists; kernels check nothing. What each op computes, to the last bit for the CPU class, is in
// arithmetic.hpp. Tokens, positions, page tables and the rows that want logits are no tensors:
// every op finds them in RunInputs. No op's output may share memory with one of its inputs. R: rows
// of the step. L: rows that want logits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "graph/rope_angles.hpp"
#include "graph/routing.hpp"
#include "graph/tensor.hpp"

namespace artel::graph {

/// out = scale * weight[token of the row].
struct EmbedRows {
    Tensor weight;  // (vocabulary, columns), any format
    Tensor out;     // (R, columns)
    float scale = 1;
};

/// out = x / sqrt(mean(x^2) + epsilon) * weight, for each run of `width` columns by itself, where
/// width is that of the weight: x is seen as (rows * columns / width, width). So a norm of each
/// head is the same op.
struct RmsNorm {
    Tensor x;       // (R or L, n * width)
    Tensor weight;  // (1, width) F32
    Tensor out;     // as x
    float epsilon = 0;
};

/// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias, for each row.
struct LayerNorm {
    Tensor x;                    // (R or L, width)
    Tensor weight;               // (1, width) F32
    std::optional<Tensor> bias;  // (1, width) F32
    Tensor out;                  // as x
    float epsilon = 0;
};

enum class Activations : std::uint8_t {
    F32,   // used as they are: weights in float formats
    I8x32  // rounded by activation_rounding.hpp first: weights in integer formats
};

/// out = x * weight^T, then * scale, then + bias.
struct MatMul {
    Tensor x;                     // (R or L, columns)
    Tensor weight;                // (out columns, columns)
    Tensor out;                   // (rows of x, out columns)
    std::optional<Tensor> scale;  // (1, 1) F32: of the whole weight
    std::optional<Tensor> bias;   // (1, out columns) F32
    Activations activations = Activations::F32;
};

enum class RopeStyle : std::uint8_t {
    Interleaved,  // pairs (0, 1), (2, 3) ...: "normal" in GGUF terms, llama
    Halves        // pairs (0, n/2), (1, n/2 + 1) ...: "neox", gemma
};

/// Turns pair i of the first `rope_dim` columns of each head by the angle
/// position * frequency_scale * base^(-2i / rope_dim) / factors[i], with frequency_scale as far as
/// the ramp says, and makes it `magnitude` times as long; other columns are copied.
struct Rope {
    Tensor x;    // (R, head_count * head_dim)
    Tensor out;  // as x
    std::uint32_t head_count = 0;
    std::uint32_t head_dim = 0;
    std::uint32_t rope_dim = 0;  // even, <= head_dim
    RopeStyle style = RopeStyle::Interleaved;
    float base = 10000;
    float frequency_scale = 1;  // 1 / (context stretch)
    YarnRamp ramp = {};
    float magnitude = 1;
    std::optional<Tensor> factors;  // (1, rope_dim / 2) F32: rope_freqs.weight
};

/// Where a layer keeps its state: a state group and the layer's place among the group's layers in
/// this graph.
struct StateSlot {
    std::uint32_t group = 0;
    std::uint32_t layer = 0;
    friend bool operator==(const StateSlot&, const StateSlot&) = default;
};

/// Writes each row's keys and values into the pages of its sequence, at its position, rounded to
/// the group's type. Sizes are those of the slot's LayerState; where its values are columns of the
/// keys, they are not written again.
struct StoreState {
    StateSlot slot;
    Tensor keys;    // (R, kv_head_count * key_dim)
    Tensor values;  // (R, kv_head_count * value_dim)
};

/// out = softmax(scale * query * keys^T) * values, for each row and head over the positions that
/// the row sees: its own and those before, the last `window` of them where window > 0. Keys and
/// values come from the pages alone, so the rows' own were stored before. Query heads share kv
/// heads in runs of head_count / kv_head_count. A sink is one more score of the head, without a
/// value: it takes its part of the softmax (gpt-oss, arXiv 2309.17453).
struct Attention {
    Tensor query;                 // (R, head_count * key_dim)
    std::optional<Tensor> sinks;  // (1, head_count) F32
    Tensor out;                   // (R, head_count * value_dim)
    StateSlot slot;
    std::uint32_t head_count = 0;
    float scale = 1;
    std::uint32_t window = 0;  // 0: all
    float softcap = 0;         // 0: none; else score = softcap * tanh(score / softcap)
};

/// out = a + b.
struct Add {
    Tensor a, b, out;  // of one shape
};

/// out = a * b, element by element.
struct Multiply {
    Tensor a, b, out;  // of one shape
};

/// out = factor * x.
struct Scale {
    Tensor x, out;
    float factor = 1;
};

enum class GateKind : std::uint8_t {
    Silu,
    GeluTanh,
    ClampedSwish  // gpt-oss: both clamped to 7, swish of 1.702 times the gate, up + 1
};

/// out = f(gate) * up.
struct GatedActivation {
    Tensor gate, up, out;  // of one shape
    GateKind kind = GateKind::Silu;
};

enum class ActivationKind : std::uint8_t { GeluErf };

/// out = f(x).
struct Activate {
    Tensor x, out;
    ActivationKind kind = ActivationKind::GeluErf;
};

/// The rows of x that want logits, in order.
struct SelectRows {
    Tensor x;    // (R, columns)
    Tensor out;  // (L, columns)
};

/// out = cap * tanh(x / cap).
struct SoftCap {
    Tensor x, out;
    float cap = 1;
};

/// out = x * weight^T of each head by itself: head h has columns [h * n, (h + 1) * n) of x and rows
/// [h * m, (h + 1) * m) of the weight.
struct HeadMatMul {
    Tensor x;       // (R, head_count * n)
    Tensor weight;  // (head_count * m, n)
    Tensor out;     // (R, head_count * m)
    Tensor room;    // (R, n + m): anything, while it runs
    std::uint32_t head_count = 0;
    Activations activations = Activations::F32;
};

/// Columns [first, first + count) of each head of x.
struct SliceHeads {
    Tensor x;    // (R, head_count * head_dim)
    Tensor out;  // (R, head_count * count)
    std::uint32_t head_count = 0;
    std::uint32_t first = 0;
};

/// Each head of a, followed by the same head of b.
struct JoinHeads {
    Tensor a;    // (R, head_count * n)
    Tensor b;    // (R, head_count * m)
    Tensor out;  // (R, head_count * (n + m))
    std::uint32_t head_count = 0;
};

/// out = sum over the experts that a row chose by its logits, of weight * down(f(gate(x)) * up(x)).
/// The matrices of all experts follow each other in one weight.
struct RoutedExperts {
    Tensor x;                              // (R, width)
    Tensor logits;                         // (R, experts)
    std::optional<Tensor> selection_bias;  // (1, experts) F32
    Tensor gate;                           // (experts * hidden, width)
    Tensor up;                             // (experts * hidden, width)
    Tensor down;                           // (experts * width, hidden)
    std::optional<Tensor> gate_bias;       // (experts, hidden) F32
    std::optional<Tensor> up_bias;         // (experts, hidden) F32
    std::optional<Tensor> down_bias;       // (experts, width) F32
    Tensor out;                            // (R, width)
    Tensor room;                           // (R, width + 2 * hidden): anything, while it runs
    Routing routing;
    GateKind kind = GateKind::Silu;
};

using Op = std::variant<EmbedRows, RmsNorm, MatMul, Rope, StoreState, Attention, Add, Multiply,
                        Scale, GatedActivation, SelectRows, SoftCap, LayerNorm, Activate,
                        RoutedExperts, HeadMatMul, SliceHeads, JoinHeads>;

/// "RmsNorm", ...: for messages and traces.
std::string_view op_name(const Op& op);

/// What an op reads and writes, for the memory plan and for passes. Unused places are invalid.
struct OpTensors {
    Tensor reads[10];
    Tensor writes;  // at most one
    Tensor room;    // scratch of the op's own
};
OpTensors op_tensors(const Op& op);

/// visit(op, overloaded{[](const Add& add) {...}, ...}).
template <class... Functions>
struct Overloaded : Functions... {
    using Functions::operator()...;
};
// Clang 16 does not deduce an aggregate's arguments by itself.
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace artel::graph
