// SPDX-License-Identifier: Apache-2.0
// What the AVX2 kernels share. Included only by files compiled for AVX2; everything is forced
// inline, so that no symbol can stand in for the baseline's.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "quant/half.hpp"

namespace artel::cpu::avx2 {

constexpr std::size_t kLanes = 8;

ARTEL_KERNEL_INLINE __m256i load_bytes(const std::byte* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
ARTEL_KERNEL_INLINE __m128i load_half(const std::byte* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
/// Eight f16 as floats.
ARTEL_KERNEL_INLINE __m256 load_f16(const std::byte* at) {
    return _mm256_cvtph_ps(load_half(at));
}

/// Mirrors graph::exact_exp, operation by operation.
ARTEL_KERNEL_INLINE __m256 exact_exp(__m256 x) {
    const __m256 magic = _mm256_set1_ps(0x1.8p23F);
    const __m256 clamped = _mm256_min_ps(_mm256_set1_ps(88.0F), x);
    const __m256 shifted = _mm256_fmadd_ps(clamped, _mm256_set1_ps(0x1.715476p0F), magic);
    const __m256 n = _mm256_sub_ps(shifted, magic);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1F), clamped);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20F), r);
    __m256 p = _mm256_set1_ps(0x1.a01a02p-13F);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.6c16c2p-10F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.111112p-7F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.555556p-5F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.555556p-3F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    __m256i exponent = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(magic));
    exponent = _mm256_add_epi32(exponent, _mm256_set1_epi32(127));
    const __m256 power = _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
    const __m256 is_low = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0F), _CMP_LT_OQ);
    return _mm256_andnot_ps(is_low, _mm256_mul_ps(p, power));
}

/// Mirrors graph::tree_sum; partial sums 0..7 and 8..15.
ARTEL_KERNEL_INLINE float tree_sum(__m256 low, __m256 high) {
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace artel::cpu::avx2
