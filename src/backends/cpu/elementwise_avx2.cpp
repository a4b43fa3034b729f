// SPDX-License-Identifier: Apache-2.0
// Rounding of activations, norms and element-by-element ops. Tails shorter than a register are
// done by the scalar functions, which give the same bytes.
#include "backends/cpu/kernels_avx2.hpp"
#include "backends/cpu/packed_format.hpp"
#include "backends/cpu/simd_avx2.hpp"
#include "graph/activation_rounding.hpp"
#include "graph/arithmetic.hpp"

namespace artel::cpu::avx2 {

namespace {

ARTEL_KERNEL_INLINE float largest_lane(__m256 x) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

ARTEL_KERNEL_INLINE __m256i round_lanes(const float* x, __m256 inverse) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

/// Sums of 16 quants, exactly: pairs to int16, then over the lanes.
ARTEL_KERNEL_INLINE std::int16_t sum_quants(const std::int8_t* quants) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quants));
    __m128i sums = _mm_madd_epi16(_mm_maddubs_epi16(_mm_set1_epi8(1), bytes), _mm_set1_epi16(1));
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4E));
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0xB1));
    return static_cast<std::int16_t>(_mm_cvtsi128_si32(sums));
}

/// Mirrors graph::round_activation_block.
ARTEL_KERNEL_INLINE void round_piece(const float* x, RoundedPiece& piece) {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    const __m256 largest = _mm256_set1_ps(__FLT_MAX__);
    __m256 amax = _mm256_setzero_ps();
    __m256 is_finite = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    for (int i = 0; i < kPieceColumns; i += 8) {
        const __m256 magnitude = _mm256_andnot_ps(sign, _mm256_loadu_ps(x + i));
        is_finite = _mm256_and_ps(is_finite, _mm256_cmp_ps(magnitude, largest, _CMP_LE_OQ));
        amax = _mm256_max_ps(amax, magnitude);
    }
    const float top = largest_lane(amax);
    const bool all_finite = _mm256_movemask_ps(is_finite) == 0xFF;
    if (!all_finite || top < graph::kActivationSmallest) {
        __builtin_memset(&piece, 0, sizeof(piece));
        if (!all_finite) piece.scale = __builtin_nanf("");
        return;
    }
    const __m256 inverse = _mm256_set1_ps(127.0F / top);
    const __m256i low = _mm256_packs_epi32(round_lanes(x, inverse), round_lanes(x + 8, inverse));
    const __m256i high =
        _mm256_packs_epi32(round_lanes(x + 16, inverse), round_lanes(x + 24, inverse));
    // Packing works within 128-bit halves; the permutation puts groups of four back in order.
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high),
                                                      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(piece.quants), bytes);
    piece.scale = top / 127.0F;
    piece.sums[0] = sum_quants(piece.quants);
    piece.sums[1] = sum_quants(piece.quants + 16);
}

/// out[i] = wide(8 of them) or one(i), for all i.
template <class Wide, class One>
ARTEL_KERNEL_INLINE void for_each_lane(std::size_t count, float* out, Wide wide, One one) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) _mm256_storeu_ps(out + i, wide(i));
    for (; i < count; ++i) out[i] = one(i);
}

ARTEL_KERNEL_INLINE __m256 silu(__m256 x) {
    const __m256 one = _mm256_set1_ps(1.0F);
    const __m256 power = exact_exp(_mm256_xor_ps(x, _mm256_set1_ps(-0.0F)));
    return _mm256_div_ps(x, _mm256_add_ps(one, power));
}

ARTEL_KERNEL_INLINE __m256 gelu_tanh(__m256 x) {
    const __m256 slope = _mm256_fmadd_ps(_mm256_set1_ps(-0x1.2444f2p-4F), _mm256_mul_ps(x, x),
                                         _mm256_set1_ps(-0x1.988454p0F));
    const __m256 power = exact_exp(_mm256_mul_ps(x, slope));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), power));
}

}  // namespace

void round_row(const float* x, std::size_t columns, RoundedPiece* pieces) {
    for (std::size_t p = 0; p < columns / kPieceColumns; ++p)
        round_piece(x + p * kPieceColumns, pieces[p]);
}

void rms_norm(const float* x, const float* weight, std::size_t width, float epsilon, float* out) {
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    std::size_t i = 0;
    for (; i + 16 <= width; i += 16) {
        const __m256 a = _mm256_loadu_ps(x + i);
        const __m256 b = _mm256_loadu_ps(x + i + kLanes);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    alignas(32) float partial[16];
    _mm256_store_ps(partial, low);
    _mm256_store_ps(partial + kLanes, high);
    for (; i < width; ++i) partial[i % 16] = graph::fused_multiply_add(x[i], x[i], partial[i % 16]);
    const float mean = graph::tree_sum(partial) / static_cast<float>(width);
    const float r = 1.0F / __builtin_sqrtf(mean + epsilon);
    const __m256 factor = _mm256_set1_ps(r);
    for_each_lane(
        width, out,
        [=](std::size_t at) {
            return _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + at), factor),
                                 _mm256_loadu_ps(weight + at));
        },
        [=](std::size_t at) { return (x[at] * r) * weight[at]; });
}

void layer_norm(const float* x, NormVectors vectors, std::size_t width, float epsilon, float* out) {
    alignas(32) float partial[16];
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
    const std::size_t whole = width / 16 * 16;
    for (std::size_t i = 0; i < whole; i += 16) {
        low = _mm256_add_ps(low, _mm256_loadu_ps(x + i));
        high = _mm256_add_ps(high, _mm256_loadu_ps(x + i + kLanes));
    }
    _mm256_store_ps(partial, low);
    _mm256_store_ps(partial + kLanes, high);
    for (std::size_t i = whole; i < width; ++i) partial[i % 16] += x[i];
    const float mean = graph::tree_sum(partial) / static_cast<float>(width);
    low = _mm256_setzero_ps();
    high = _mm256_setzero_ps();
    const __m256 centre = _mm256_set1_ps(mean);
    for (std::size_t i = 0; i < whole; i += 16) {
        const __m256 a = _mm256_sub_ps(_mm256_loadu_ps(x + i), centre);
        const __m256 b = _mm256_sub_ps(_mm256_loadu_ps(x + i + kLanes), centre);
        low = _mm256_fmadd_ps(a, a, low);
        high = _mm256_fmadd_ps(b, b, high);
    }
    _mm256_store_ps(partial, low);
    _mm256_store_ps(partial + kLanes, high);
    for (std::size_t i = whole; i < width; ++i)
        partial[i % 16] = graph::fused_multiply_add(x[i] - mean, x[i] - mean, partial[i % 16]);
    const float variance = graph::tree_sum(partial) / static_cast<float>(width);
    const float r = 1.0F / __builtin_sqrtf(variance + epsilon);
    const __m256 factor = _mm256_set1_ps(r);
    for_each_lane(
        width, out,
        [=](std::size_t at) {
            const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + at), centre);
            return _mm256_mul_ps(_mm256_mul_ps(d, factor), _mm256_loadu_ps(vectors.weight + at));
        },
        [=](std::size_t at) { return ((x[at] - mean) * r) * vectors.weight[at]; });
    if (vectors.bias != nullptr) add(out, vectors.bias, width, out);
}

void gelu_erf(const float* x, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::gelu_erf(x[i]);
}

void silu_gate(const float* gate, const float* up, std::size_t count, float* out) {
    for_each_lane(
        count, out,
        [=](std::size_t i) {
            return _mm256_mul_ps(silu(_mm256_loadu_ps(gate + i)), _mm256_loadu_ps(up + i));
        },
        [=](std::size_t i) { return graph::silu(gate[i]) * up[i]; });
}

void gelu_gate(const float* gate, const float* up, std::size_t count, float* out) {
    for_each_lane(
        count, out,
        [=](std::size_t i) {
            return _mm256_mul_ps(gelu_tanh(_mm256_loadu_ps(gate + i)), _mm256_loadu_ps(up + i));
        },
        [=](std::size_t i) { return graph::gelu_tanh(gate[i]) * up[i]; });
}

void clamped_gate(const float* gate, const float* up, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::clamped_swish(gate[i], up[i]);
}

void add_scaled(const float* x, float factor, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = graph::fused_multiply_add(x[i], factor, out[i]);
}

void add(const float* a, const float* b, std::size_t count, float* out) {
    for_each_lane(
        count, out,
        [=](std::size_t i) {
            return _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
        },
        [=](std::size_t i) { return a[i] + b[i]; });
}

void multiply(const float* a, const float* b, std::size_t count, float* out) {
    for_each_lane(
        count, out,
        [=](std::size_t i) {
            return _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
        },
        [=](std::size_t i) { return a[i] * b[i]; });
}

void scale(const float* x, float factor, std::size_t count, float* out) {
    for_each_lane(
        count, out,
        [=](std::size_t i) {
            return _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(factor));
        },
        [=](std::size_t i) { return x[i] * factor; });
}

void soft_cap(const float* x, float cap, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i) out[i] = graph::soft_cap(x[i], cap);
}

}  // namespace artel::cpu::avx2
