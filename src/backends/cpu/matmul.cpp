// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/matmul.hpp"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/packed_codes.hpp"
#include "backends/cpu/packed_format.hpp"
#include "graph/arithmetic.hpp"

namespace artel::cpu {

namespace {

// clang-format off
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q4_0) { return kernels.matmul.q4_0; }
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q4_1) { return kernels.matmul.q4_1; }
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q5_0) { return kernels.matmul.q5_0; }
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q5_1) { return kernels.matmul.q5_1; }
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q8_0) { return kernels.matmul.q8_0; }
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q4_K) { return kernels.matmul.q4_k; }
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q5_K) { return kernels.matmul.q5_k; }
RoundedMatMul kernel_of(const Kernels& kernels, quant::Q6_K) { return kernels.matmul.q6_k; }
FloatMatMul kernel_of(const Kernels& kernels, quant::F32) { return kernels.matmul.f32; }
FloatMatMul kernel_of(const Kernels& kernels, quant::F16) { return kernels.matmul.f16; }
FloatMatMul kernel_of(const Kernels& kernels, quant::BF16) { return kernels.matmul.bf16; }
// clang-format on
template <class F>
requires kIsPackedAsCodes<F> RoundedMatMul kernel_of(const Kernels& kernels, F) {
    return kernels.matmul.codes[static_cast<std::size_t>(kCodeKernel<F>)];
}

/// result * scale, + bias, into the outputs of one tile that exist: a group may begin before the
/// first row of the weight and end after its last.
void finish_tile(const MatMulWork& work, std::size_t first_group, std::size_t groups,
                 std::size_t first_x, std::size_t rows, const float (*results)[kTileColumns]) {
    const std::size_t begin = std::max(first_group * kGroupRows, work.weight.first_row);
    const std::size_t end =
        std::min((first_group + groups) * kGroupRows, work.weight.first_row + work.weight.count);
    for (std::size_t r = 0; r < rows; ++r) {
        float* out = work.out + (first_x + r) * work.weight.count;
        for (std::size_t row = begin; row < end; ++row) {
            const std::size_t column = row - work.weight.first_row;
            float result = results[r][row - first_group * kGroupRows];
            if (work.scale != nullptr) result *= *work.scale;
            if (work.bias != nullptr) result += work.bias[column];
            out[column] = result;
        }
    }
}

/// Groups [first_group, first_group + groups), at most kTileGroups, for all rows of x.
template <class F, class X>
void matmul_groups(const MatMulWork& work, void (*kernel)(const MatMulTile<X>&), const X* x,
                   std::size_t first_group, std::size_t groups) {
    const std::size_t columns = work.weight.columns;
    MatMulTile<X> tile{};
    tile.weights = work.weight.packed + first_group * group_bytes<F>(columns);
    tile.groups = groups;
    tile.columns = columns;
    tile.x_stride = Packed<F>::kIsInteger ? columns / kPieceColumns : columns;
    float results[kTileRows][kTileColumns];
    tile.results = results;
    for (std::size_t row = 0; row < work.rows; row += kTileRows) {
        tile.x = x + row * tile.x_stride;
        tile.rows = std::min(kTileRows, work.rows - row);
        kernel(tile);
        finish_tile(work, first_group, groups, row, tile.rows, results);
    }
}

template <class F>
void matmul_packed(const Kernels& kernels, ThreadPool& pool, const MatMulWork& work) {
    const std::size_t first = work.weight.first_row / kGroupRows;
    const std::size_t end =
        (work.weight.first_row + work.weight.count + kGroupRows - 1) / kGroupRows;
    const std::size_t pieces = (end - first + kTileGroups - 1) / kTileGroups;
    const auto kernel = kernel_of(kernels, F{});
    pool.parallel_for(static_cast<std::uint32_t>(pieces), [&](std::uint32_t piece, std::uint32_t) {
        const std::size_t group = first + piece * kTileGroups;
        const std::size_t groups = std::min(kTileGroups, end - group);
        if constexpr (Packed<F>::kIsInteger)
            matmul_groups<F>(work, kernel, work.rounded, group, groups);
        else
            matmul_groups<F>(work, kernel, work.x, group, groups);
    });
}

/// A weight of one row that is not packed.
void matmul_plain_row(const MatMulWork& work) {
    const auto* weight = reinterpret_cast<const float*>(work.weight.packed);
    for (std::size_t row = 0; row < work.rows; ++row) {
        const float* x = work.x + row * work.weight.columns;
        float acc = 0;
        for (std::size_t k = 0; k < work.weight.columns; ++k)
            acc = graph::fused_multiply_add(x[k], weight[k], acc);
        if (work.scale != nullptr) acc *= *work.scale;
        if (work.bias != nullptr) acc += *work.bias;
        work.out[row] = acc;
    }
}

}  // namespace

void round_rows(const Kernels& kernels, ThreadPool& pool, const float* x, std::size_t rows,
                std::size_t columns, RoundedPiece* pieces) {
    pool.parallel_for(static_cast<std::uint32_t>(rows), [&](std::uint32_t row, std::uint32_t) {
        kernels.round_row(x + row * columns, columns, pieces + row * (columns / kPieceColumns));
    });
}

void matmul(const Kernels& kernels, ThreadPool& pool, const MatMulWork& work) {
    if (!work.weight.is_packed) return matmul_plain_row(work);
    quant::with_format(work.weight.format,
                       [&]<class F>() { matmul_packed<F>(kernels, pool, work); });
}

}  // namespace artel::cpu
