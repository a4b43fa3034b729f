// SPDX-License-Identifier: Apache-2.0
// The kernels in plain C++ for the baseline instruction set. Loops have constant trip counts over
// lanes, so that a compiler can use whatever vectors the baseline has.
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/matmul_codes.hpp"
#include "backends/cpu/packed_format.hpp"
#include "graph/activation_rounding.hpp"
#include "graph/arithmetic.hpp"

namespace artel::cpu::scalar {

namespace {

using graph::fused_multiply_add;

template <class T>
T load(const std::byte* source, std::size_t index) {
    T value;
    std::memcpy(&value, source + index * sizeof(T), sizeof(T));
    return value;
}

void round_row(const float* x, std::size_t columns, RoundedPiece* pieces) {
    for (std::size_t p = 0; p < columns / kPieceColumns; ++p) {
        RoundedPiece& piece = pieces[p];
        piece.scale = graph::round_activation_block(x + p * kPieceColumns, piece.quants);
        for (int half = 0; half < 2; ++half) {
            int sum = 0;
            for (int i = 0; i < 16; ++i) sum += piece.quants[16 * half + i];
            piece.sums[half] = static_cast<std::int16_t>(sum);
        }
    }
}

/// The whole numbers of 32 columns of eight rows.
struct PieceQuants {
    std::int16_t rows[kGroupRows][kPieceColumns];
};

/// The 32 bytes of a run, quants of 8 bits.
template <class P>
void unpack_run(const std::uint8_t* packed, int run, std::int8_t* quants) {
    const std::uint8_t* low = packed + kRegisterBytes * (run / 2);
    std::uint8_t values[kRegisterBytes];
    if (run % 2 == 0)
        for (int i = 0; i < kRegisterBytes; ++i) values[i] = low[i] & 0x0F;
    else
        for (int i = 0; i < kRegisterBytes; ++i) values[i] = low[i] >> 4;
    if constexpr (P::kBits == 5) {
        const auto mask = static_cast<std::uint8_t>(1 << run);
        for (int i = 0; i < kRegisterBytes; ++i)
            values[i] |= (packed[4 * kRegisterBytes + i] & mask) != 0 ? 0x10 : 0;
    }
    if constexpr (P::kBits == 6) {
        const std::uint8_t* high = packed + kRegisterBytes * (4 + run / 4);
        const auto one = static_cast<std::uint8_t>(1 << (2 * (run % 4)));
        const auto two = static_cast<std::uint8_t>(2 << (2 * (run % 4)));
        for (int i = 0; i < kRegisterBytes; ++i) {
            values[i] |= (high[i] & one) != 0 ? 0x10 : 0;
            values[i] |= (high[i] & two) != 0 ? 0x20 : 0;
        }
    }
    for (int i = 0; i < kRegisterBytes; ++i)
        quants[i] = static_cast<std::int8_t>(values[i] - P::kOffset);
}

template <class P>
void unpack_piece(const std::byte* packed, PieceQuants& quants) {
    std::int8_t rows[kGroupRows][kPieceColumns];
    for (int run = 0; run < 8; ++run) {
        std::int8_t bytes[kRegisterBytes];
        if constexpr (P::kBits == 8)
            std::memcpy(bytes, packed + kRegisterBytes * run, kRegisterBytes);
        else
            unpack_run<P>(reinterpret_cast<const std::uint8_t*>(packed), run, bytes);
        for (int row = 0; row < kGroupRows; ++row)
            std::memcpy(rows[row] + 4 * run, bytes + 4 * row, 4);
    }
    for (int row = 0; row < kGroupRows; ++row)
        for (int i = 0; i < kPieceColumns; ++i) quants.rows[row][i] = rows[row][i];
}

std::int32_t dot_of_16(const std::int16_t* a, const std::int16_t* b) {
    std::int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += std::int32_t{a[i]} * std::int32_t{b[i]};
    return sum;
}

/// dots[half][row]: exact sums over the first and the last 16 columns.
void piece_dots(const PieceQuants& quants, const std::int8_t* x, std::int32_t dots[2][kGroupRows]) {
    std::int16_t wide[kPieceColumns];
    for (int i = 0; i < kPieceColumns; ++i) wide[i] = x[i];
    for (int row = 0; row < kGroupRows; ++row) {
        dots[0][row] = dot_of_16(quants.rows[row], wide);
        dots[1][row] = dot_of_16(quants.rows[row] + 16, wide + 16);
    }
}

/// The accumulators of arithmetic.hpp for eight outputs.
struct Sums {
    float acc[kGroupRows] = {};
    float low[kGroupRows] = {};
};

/// Adds one piece to the accumulators of one row of x.
template <class P>
void add_piece(const PieceQuants& quants, const std::byte* block, int piece, const RoundedPiece& x,
               Sums& sums) {
    std::int32_t dots[2][kGroupRows];
    piece_dots(quants, x.quants, dots);
    const std::byte* sub = block + P::kSubScalesOffset + piece * P::kSubScaleBytes;
    for (std::size_t row = 0; row < kGroupRows; ++row) {
        std::int32_t dot = dots[0][row] + dots[1][row];
        std::int32_t sum = x.sums[0] + x.sums[1];
        if constexpr (P::kSubScales == SubScales::PartsOf32) {
            dot *= load<std::uint8_t>(sub, row);
            sum *= load<std::uint8_t>(sub, 8 + row);
        }
        if constexpr (P::kSubScales == SubScales::PartsOf16)
            dot = load<std::int8_t>(sub, row) * dots[0][row] +
                  load<std::int8_t>(sub, 8 + row) * dots[1][row];
        const float scale = quant::f16_to_f32(load<quant::F16Bits>(block, row));
        sums.acc[row] = fused_multiply_add(static_cast<float>(dot), scale * x.scale, sums.acc[row]);
        if constexpr (P::kHasMinimum) {
            float offset = quant::f16_to_f32(load<quant::F16Bits>(block + P::kMinimumOffset, row));
            if constexpr (P::kSubScales == SubScales::PartsOf32) offset = -offset;
            sums.low[row] =
                fused_multiply_add(static_cast<float>(sum), offset * x.scale, sums.low[row]);
        }
    }
}

template <class F>
void rounded_matmul(const MatMulTile<RoundedPiece>& tile) {
    using P = Packed<F>;
    for (std::size_t group = 0; group < tile.groups; ++group) {
        const std::byte* weights = tile.weights + group * group_bytes<F>(tile.columns);
        Sums sums[kTileRows];
        for (std::size_t b = 0; b < tile.columns / P::kElements; ++b)
            for (int piece = 0; piece < P::kPieces; ++piece) {
                const std::byte* block = weights + b * P::kBytes;
                PieceQuants quants;
                unpack_piece<P>(block + P::kQuantsOffset + piece * P::kPieceBytes, quants);
                const std::size_t at = b * P::kPieces + static_cast<std::size_t>(piece);
                for (std::size_t r = 0; r < tile.rows; ++r)
                    add_piece<P>(quants, block, piece, tile.x[r * tile.x_stride + at], sums[r]);
            }
        for (std::size_t r = 0; r < tile.rows; ++r)
            for (std::size_t row = 0; row < kGroupRows; ++row)
                tile.results[r][group * kGroupRows + row] =
                    P::kHasMinimum ? sums[r].acc[row] + sums[r].low[row] : sums[r].acc[row];
    }
}

template <class F>
void float_matmul(const MatMulTile<float>& tile) {
    for (std::size_t group = 0; group < tile.groups; ++group) {
        const std::byte* weights = tile.weights + group * group_bytes<F>(tile.columns);
        float acc[kTileRows][kGroupRows] = {};
        for (std::size_t k = 0; k < tile.columns; ++k) {
            float values[kGroupRows];
            for (std::size_t row = 0; row < kGroupRows; ++row)
                F::decode(load<typename F::Block>(weights, k * kGroupRows + row), values + row);
            for (std::size_t r = 0; r < tile.rows; ++r)
                for (std::size_t row = 0; row < kGroupRows; ++row)
                    acc[r][row] =
                        fused_multiply_add(tile.x[r * tile.x_stride + k], values[row], acc[r][row]);
        }
        for (std::size_t r = 0; r < tile.rows; ++r)
            std::memcpy(tile.results[r] + group * kGroupRows, acc[r], sizeof(acc[r]));
    }
}

template <class F>
float element(const std::byte* values, std::size_t index) {
    float value = 0;
    F::decode(load<typename F::Block>(values, index), &value);
    return value;
}

constexpr std::size_t kBlockPositions = 64;

/// Scores of the seen positions; the largest is returned.
template <class F>
float score_block(const AttentionBlock& block, const float* query, float* scores) {
    for (std::size_t j = block.first; j < block.end; ++j) scores[j] = 0;
    for (std::size_t k = 0; k < block.key_dim; ++k)
        for (std::size_t j = block.first; j < block.end; ++j)
            scores[j] = fused_multiply_add(
                query[k], element<F>(block.keys, k * kBlockPositions + j), scores[j]);
    float top = 0;
    for (std::size_t j = block.first; j < block.end; ++j) {
        scores[j] *= block.scale;
        if (block.softcap != 0) scores[j] = graph::soft_cap(scores[j], block.softcap);
        top = j == block.first || scores[j] > top ? scores[j] : top;
    }
    return top;
}

template <class F>
void attend(const AttentionBlock& block, const float* query, float* block_vector,
            AttentionState& state) {
    float weights[kBlockPositions];
    const float top = score_block<F>(block, query, weights);
    float partial[16] = {};
    float* vector = state.is_empty ? state.vector : block_vector;
    for (std::size_t c = 0; c < block.value_dim; ++c) vector[c] = 0;
    for (std::size_t j = block.first; j < block.end; ++j) {
        weights[j] = graph::exact_exp(weights[j] - top);
        partial[j % 16] += weights[j];
        for (std::size_t c = 0; c < block.value_dim; ++c)
            vector[c] = fused_multiply_add(
                weights[j], element<F>(block.values, j * block.value_dim + c), vector[c]);
    }
    const float sum = graph::tree_sum(partial);
    if (state.is_empty) {
        state.top = top;
        state.sum = sum;
        state.is_empty = false;
        return;
    }
    const float merged = top > state.top ? top : state.top;
    const float a = graph::exact_exp(state.top - merged);
    const float b = graph::exact_exp(top - merged);
    state.sum = fused_multiply_add(sum, b, state.sum * a);
    for (std::size_t c = 0; c < block.value_dim; ++c)
        state.vector[c] = fused_multiply_add(vector[c], b, state.vector[c] * a);
    state.top = merged;
}

void rms_norm(const float* x, const float* weight, std::size_t width, float epsilon, float* out) {
    float partial[16] = {};
    for (std::size_t i = 0; i < width; ++i)
        partial[i % 16] = fused_multiply_add(x[i], x[i], partial[i % 16]);
    const float mean = graph::tree_sum(partial) / static_cast<float>(width);
    const float r = 1.0F / std::sqrt(mean + epsilon);
    for (std::size_t i = 0; i < width; ++i) out[i] = (x[i] * r) * weight[i];
}

void layer_norm(const float* x, NormVectors vectors, std::size_t width, float epsilon, float* out) {
    float partial[16] = {};
    for (std::size_t i = 0; i < width; ++i) partial[i % 16] += x[i];
    const float mean = graph::tree_sum(partial) / static_cast<float>(width);
    for (float& sum : partial) sum = 0;
    for (std::size_t i = 0; i < width; ++i) {
        out[i] = x[i] - mean;
        partial[i % 16] = fused_multiply_add(out[i], out[i], partial[i % 16]);
    }
    const float r =
        1.0F / std::sqrt(graph::tree_sum(partial) / static_cast<float>(width) + epsilon);
    for (std::size_t i = 0; i < width; ++i) out[i] = (out[i] * r) * vectors.weight[i];
    if (vectors.bias == nullptr) return;
    for (std::size_t i = 0; i < width; ++i) out[i] += vectors.bias[i];
}

void gelu_erf(const float* x, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::gelu_erf(x[i]);
}
void silu_gate(const float* gate, const float* up, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::silu(gate[i]) * up[i];
}
void gelu_gate(const float* gate, const float* up, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::gelu_tanh(gate[i]) * up[i];
}
void clamped_gate(const float* gate, const float* up, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::clamped_swish(gate[i], up[i]);
}
void add_scaled(const float* x, float factor, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = graph::fused_multiply_add(x[i], factor, out[i]);
}
void add(const float* a, const float* b, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}
void multiply(const float* a, const float* b, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}
void scale(const float* x, float factor, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = x[i] * factor;
}
void soft_cap(const float* x, float cap, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::soft_cap(x[i], cap);
}

}  // namespace

const Kernels kKernels = {
    .isa = Isa::Scalar,
    .round_row = round_row,
    .matmul = {.q4_0 = rounded_matmul<quant::Q4_0>,
               .q4_1 = rounded_matmul<quant::Q4_1>,
               .q5_0 = rounded_matmul<quant::Q5_0>,
               .q5_1 = rounded_matmul<quant::Q5_1>,
               .q8_0 = rounded_matmul<quant::Q8_0>,
               .q4_k = rounded_matmul<quant::Q4_K>,
               .q5_k = rounded_matmul<quant::Q5_K>,
               .q6_k = rounded_matmul<quant::Q6_K>,
               .f32 = float_matmul<quant::F32>,
               .f16 = float_matmul<quant::F16>,
               .bf16 = float_matmul<quant::BF16>,
               .codes = kMatMulCodes},
    .attend_f16 = attend<quant::F16>,
    .attend_f32 = attend<quant::F32>,
    .scale = scale,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .gelu_erf = gelu_erf,
    .silu_gate = silu_gate,
    .gelu_gate = gelu_gate,
    .clamped_gate = clamped_gate,
    .add_scaled = add_scaled,
    .add = add,
    .multiply = multiply,
    .soft_cap = soft_cap,
};

}  // namespace artel::cpu::scalar
