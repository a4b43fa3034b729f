// SPDX-License-Identifier: Apache-2.0
// Kernels: the loops that exist once for each instruction set, as a table of functions on plain
// pointers. All tables give the same bytes (graph/arithmetic.hpp); only speed differs. Kernels
// check nothing and own nothing; what is not here is shared code, compiled once. This header is
// included by files compiled for an instruction set, so it includes next to nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace artel::cpu {

enum class Isa : std::uint8_t { Scalar, Avx2 };

/// 32 activations, rounded by graph/activation_rounding.hpp.
struct RoundedPiece {
    float scale;
    std::int16_t sums[2];  // of the first and of the last 16 quants
    std::int8_t quants[32];
};
static_assert(sizeof(RoundedPiece) == 40);

constexpr std::size_t kTileRows = 4;    // rows of activations that share a pass over weights
constexpr std::size_t kTileGroups = 4;  // groups of 8 weight rows
constexpr std::size_t kTileColumns = 32;

/// results[r][8g + lane] = row r of x times weight row `lane` of group g.
/// X is RoundedPiece for weights in integer formats, float for the others.
template <class X>
struct MatMulTile {
    const std::byte* weights;  // groups one after another (packed_format.hpp)
    std::size_t groups;        // 1 .. kTileGroups
    std::size_t columns;
    const X* x;                      // (rows, x_stride)
    std::size_t x_stride;            // elements between rows
    std::size_t rows;                // 1 .. kTileRows
    float (*results)[kTileColumns];  // (rows, 32)
};
using RoundedMatMul = void (*)(const MatMulTile<RoundedPiece>&);
using FloatMatMul = void (*)(const MatMulTile<float>&);

/// One page's keys and values of one kv head, and which of its 64 positions a row sees.
struct AttentionBlock {
    const std::byte* keys;    // (key_dim, 64) of the state's type
    const std::byte* values;  // (64, value_dim)
    std::size_t key_dim;
    std::size_t value_dim;
    std::size_t first;  // positions [first, end) of the block are seen; at least one
    std::size_t end;
    float scale;
    float softcap;  // 0: none
};
/// The running (Top, Sum, Vector) of one row and head.
struct AttentionState {
    float top = 0;
    float sum = 0;
    bool is_empty = true;
    float* vector = nullptr;  // (value_dim)
};
/// Merges a block into the state of the head whose query is given. block_vector: (value_dim) room.
using AttendBlock = void (*)(const AttentionBlock& block, const float* query, float* block_vector,
                             AttentionState& state);

struct NormVectors {
    const float* weight;
    const float* bias;  // or null
};

struct Kernels {
    Isa isa;
    void (*round_row)(const float* x, std::size_t columns, RoundedPiece* pieces);
    struct {
        RoundedMatMul q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k;
        FloatMatMul f32, f16, bf16;
        const RoundedMatMul* codes;  // by CodeKernel (packed_codes.hpp)
    } matmul;
    AttendBlock attend_f16, attend_f32;
    void (*scale)(const float* x, float factor, std::size_t count, float* out);
    /// One run of `width` columns.
    void (*rms_norm)(const float* x, const float* weight, std::size_t width, float epsilon,
                     float* out);
    /// One row.
    void (*layer_norm)(const float* x, NormVectors vectors, std::size_t width, float epsilon,
                       float* out);
    void (*gelu_erf)(const float* x, std::size_t count, float* out);
    void (*silu_gate)(const float* gate, const float* up, std::size_t count, float* out);
    void (*gelu_gate)(const float* gate, const float* up, std::size_t count, float* out);
    void (*clamped_gate)(const float* gate, const float* up, std::size_t count, float* out);
    /// out = fma(x, factor, out).
    void (*add_scaled)(const float* x, float factor, std::size_t count, float* out);
    void (*add)(const float* a, const float* b, std::size_t count, float* out);
    void (*multiply)(const float* a, const float* b, std::size_t count, float* out);
    void (*soft_cap)(const float* x, float cap, std::size_t count, float* out);
};

namespace scalar {
extern const Kernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
#endif

}  // namespace artel::cpu
