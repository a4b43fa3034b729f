// SPDX-License-Identifier: Apache-2.0
// MatMul over float formats: a lane is an output row, one accumulator each, columns ascending. A
// chain of multiply-adds waits for itself, so eight chains run side by side: groups of weight rows
// or rows of x.
#include "backends/cpu/kernels_avx2.hpp"
#include "backends/cpu/packed_format.hpp"
#include "backends/cpu/simd_avx2.hpp"

namespace artel::cpu::avx2 {

namespace {

template <class F>
struct Lanes;
template <>
struct Lanes<quant::F32> {
    ARTEL_KERNEL_INLINE static __m256 load(const std::byte* at) {
        return _mm256_castsi256_ps(load_bytes(at));
    }
};
template <>
struct Lanes<quant::F16> {
    ARTEL_KERNEL_INLINE static __m256 load(const std::byte* at) { return load_f16(at); }
};
template <>
struct Lanes<quant::BF16> {
    ARTEL_KERNEL_INLINE static __m256 load(const std::byte* at) {
        const __m256i wide = _mm256_cvtepu16_epi32(load_half(at));
        return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
    }
};

template <class F, int Groups, int Rows>
ARTEL_KERNEL_INLINE void multiply_groups(const MatMulTile<float>& tile, std::size_t first_group) {
    constexpr std::size_t kColumnBytes = kGroupRows * sizeof(typename F::Block);
    const std::byte* weights[Groups];
#pragma GCC unroll 4
    for (int g = 0; g < Groups; ++g)
        weights[g] = tile.weights +
                     (first_group + static_cast<std::size_t>(g)) * group_bytes<F>(tile.columns);
    __m256 acc[Rows][Groups];
    for (auto& row : acc)
        for (auto& lanes : row) lanes = _mm256_setzero_ps();
    for (std::size_t k = 0; k < tile.columns; ++k)
#pragma GCC unroll 4
        for (int g = 0; g < Groups; ++g) {
            const __m256 w = Lanes<F>::load(weights[g] + k * kColumnBytes);
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) {
                const float* x = tile.x + static_cast<std::size_t>(r) * tile.x_stride;
                acc[r][g] = _mm256_fmadd_ps(_mm256_broadcast_ss(x + k), w, acc[r][g]);
            }
        }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
        for (int g = 0; g < Groups; ++g)
            _mm256_storeu_ps(
                tile.results[r] + (first_group + static_cast<std::size_t>(g)) * kGroupRows,
                acc[r][g]);
}

template <class F, int Rows>
ARTEL_KERNEL_INLINE void multiply_rows(const MatMulTile<float>& tile) {
    constexpr int kGroups = Rows <= 2 ? 4 : 2;  // together
    std::size_t group = 0;
    for (; group + kGroups <= tile.groups; group += kGroups)
        multiply_groups<F, kGroups, Rows>(tile, group);
    for (; group < tile.groups; ++group) multiply_groups<F, 1, Rows>(tile, group);
}

template <class F>
ARTEL_KERNEL_INLINE void multiply_tile(const MatMulTile<float>& tile) {
    switch (tile.rows) {
        case 1:
            return multiply_rows<F, 1>(tile);
        case 2:
            return multiply_rows<F, 2>(tile);
        case 3:
            return multiply_rows<F, 3>(tile);
        default:
            return multiply_rows<F, 4>(tile);
    }
}

}  // namespace

void matmul_f32(const MatMulTile<float>& tile) {
    multiply_tile<quant::F32>(tile);
}
void matmul_f16(const MatMulTile<float>& tile) {
    multiply_tile<quant::F16>(tile);
}
void matmul_bf16(const MatMulTile<float>& tile) {
    multiply_tile<quant::BF16>(tile);
}

}  // namespace artel::cpu::avx2
