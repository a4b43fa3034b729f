// SPDX-License-Identifier: Apache-2.0
// MatMul over integer formats: a lane is an output row. Products of unsigned weights and signed
// activations are added in pairs to int16 (vpmaddubsw), which saturates; the bounds beside each use
// say why it can't here. One rounded multiply-add a lane and 32 columns.
#include "backends/cpu/kernels_avx2.hpp"
#include "backends/cpu/packed_format.hpp"
#include "backends/cpu/simd_avx2.hpp"

namespace artel::cpu::avx2 {

namespace {

/// Four activations in each lane.
ARTEL_KERNEL_INLINE __m256i broadcast_run(const RoundedPiece& x, int run) {
    std::int32_t four;
    __builtin_memcpy(&four, x.quants + 4 * run, sizeof(four));
    return _mm256_set1_epi32(four);
}

/// The sums of the first and last 16 quants in each lane.
ARTEL_KERNEL_INLINE __m256i broadcast_sums(const RoundedPiece& x) {
    std::int32_t both;
    __builtin_memcpy(&both, x.sums, sizeof(both));
    return _mm256_set1_epi32(both);
}

/// Eight bytes as int16 pairs (low, high) of a lane.
ARTEL_KERNEL_INLINE __m256i pair_lanes(__m256i low, __m256i high) {
    return _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(0xFFFF)),
                           _mm256_slli_epi32(high, 16));
}
ARTEL_KERNEL_INLINE __m256i load_unsigned_lanes(const std::byte* at) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
}
ARTEL_KERNEL_INLINE __m256i load_signed_lanes(const std::byte* at) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
}

/// The unsigned quants of two runs that share a register of low halves: runs 2v and 2v + 1.
struct TwoRuns {
    __m256i even, odd;
};
template <class P>
ARTEL_KERNEL_INLINE TwoRuns load_two_runs(const std::byte* piece, int v) {
    const __m256i nibble = _mm256_set1_epi8(0x0F);
    const __m256i packed = load_bytes(piece + kRegisterBytes * v);
    TwoRuns runs{_mm256_and_si256(packed, nibble),
                 _mm256_and_si256(_mm256_srli_epi16(packed, 4), nibble)};
    if constexpr (P::kBits == 5) {
        // Bits 2v and 2v + 1 go to bit 4.
        const __m256i bit = _mm256_set1_epi8(0x10);
        const __m256i high = load_bytes(piece + 4 * kRegisterBytes);
        const __m256i even =
            v < 2 ? _mm256_slli_epi16(high, 4 - 2 * v) : _mm256_srli_epi16(high, 2 * v - 4);
        const __m256i odd =
            v < 2 ? _mm256_slli_epi16(high, 3 - 2 * v) : _mm256_srli_epi16(high, 2 * v - 3);
        runs.even = _mm256_or_si256(runs.even, _mm256_and_si256(even, bit));
        runs.odd = _mm256_or_si256(runs.odd, _mm256_and_si256(odd, bit));
    }
    if constexpr (P::kBits == 6) {
        // Bits 4(v % 2) and 4(v % 2) + 2, two each, go to bits 4 and 5.
        const __m256i bits = _mm256_set1_epi8(0x30);
        const __m256i high = load_bytes(piece + (4 + v / 2) * kRegisterBytes);
        const __m256i even = v % 2 == 0 ? _mm256_slli_epi16(high, 4) : high;
        const __m256i odd = v % 2 == 0 ? _mm256_slli_epi16(high, 2) : _mm256_srli_epi16(high, 2);
        runs.even = _mm256_or_si256(runs.even, _mm256_and_si256(even, bits));
        runs.odd = _mm256_or_si256(runs.odd, _mm256_and_si256(odd, bits));
    }
    return runs;
}

/// What the dots of a piece are scaled with: int16 pairs a lane, for the first and last 16 columns.
template <class P>
struct PieceScales {
    __m256i first, last;
    __m256i offsets;  // pairs for the two sums: what unsigned quants have too much, times the scale
    __m256i minima;   // pairs for the two sums
};
template <class P>
ARTEL_KERNEL_INLINE PieceScales<P> load_piece_scales(const std::byte* sub) {
    PieceScales<P> scales;
    scales.first = scales.last = _mm256_set1_epi16(1);
    scales.offsets = _mm256_set1_epi16(P::kOffset);
    scales.minima = _mm256_set1_epi16(1);
    if constexpr (P::kSubScales == SubScales::PartsOf32) {
        const __m256i scale = load_unsigned_lanes(sub);
        const __m256i minimum = load_unsigned_lanes(sub + kGroupRows);
        scales.first = scales.last = pair_lanes(scale, scale);
        scales.minima = pair_lanes(minimum, minimum);
    }
    if constexpr (P::kSubScales == SubScales::PartsOf16) {
        const __m256i first = load_signed_lanes(sub);
        const __m256i last = load_signed_lanes(sub + kGroupRows);
        scales.first = pair_lanes(first, first);
        scales.last = pair_lanes(last, last);
        scales.offsets = _mm256_slli_epi16(pair_lanes(first, last), 5);  // * 32: fits, 128 * 32
    }
    return scales;
}

/// dots[r] += the exact, scaled dot of a piece with row r of x.
template <class P, int Rows>
ARTEL_KERNEL_INLINE void add_unsigned_dots(const std::byte* piece, const PieceScales<P>& scales,
                                           const RoundedPiece* const* x, __m256i* dots) {
    // Pairs are at most 2 * 127 * quant in magnitude: 15 * 254 * 8 runs, 31 * 254 * 4 runs and
    // 63 * 254 * 2 runs stay below 2^15.
    constexpr int kRunsASum = P::kBits == 4 ? 8 : P::kBits == 5 ? 4 : 2;
    __m256i sums[Rows];
    for (__m256i& sum : sums) sum = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
        const TwoRuns runs = load_two_runs<P>(piece, v);
        const bool is_last = (2 * v + 2) % kRunsASum == 0;
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
            const __m256i even = _mm256_maddubs_epi16(runs.even, broadcast_run(*x[r], 2 * v));
            const __m256i odd = _mm256_maddubs_epi16(runs.odd, broadcast_run(*x[r], 2 * v + 1));
            sums[r] = _mm256_add_epi16(sums[r], _mm256_add_epi16(even, odd));
            if (!is_last) continue;
            const __m256i scaled = _mm256_madd_epi16(sums[r], v < 2 ? scales.first : scales.last);
            dots[r] = _mm256_add_epi32(dots[r], scaled);
            sums[r] = _mm256_setzero_si256();
        }
    }
}

/// Signed weights: |w| * (x with the sign of w). 128 * 127 * 2 < 2^15; x is never -128.
template <int Rows>
ARTEL_KERNEL_INLINE void add_signed_dots(const std::byte* piece, const RoundedPiece* const* x,
                                         __m256i* dots) {
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int run = 0; run < 8; ++run) {
        const __m256i weights = load_bytes(piece + kRegisterBytes * run);
        const __m256i magnitude = _mm256_abs_epi8(weights);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
            const __m256i signed_x = _mm256_sign_epi8(broadcast_run(*x[r], run), weights);
            const __m256i pairs = _mm256_maddubs_epi16(magnitude, signed_x);
            dots[r] = _mm256_add_epi32(dots[r], _mm256_madd_epi16(pairs, ones));
        }
    }
}

/// One group of eight weight rows times `Rows` rows of x.
template <class F, int Rows>
ARTEL_KERNEL_INLINE void multiply_group(const std::byte* weights, std::size_t columns,
                                        const RoundedPiece* x, std::size_t x_stride,
                                        float* results) {
    using P = Packed<F>;
    __m256 acc[Rows];
    __m256 low[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) acc[r] = low[r] = _mm256_setzero_ps();
    const std::byte* const end = weights + group_bytes<F>(columns);
    for (const std::byte* block = weights; block < end; block += P::kBytes) {
        const __m256 scale = load_f16(block);
        __m256 offset = _mm256_setzero_ps();
        if constexpr (P::kHasMinimum) offset = load_f16(block + P::kMinimumOffset);
        if constexpr (P::kSubScales == SubScales::PartsOf32)
            offset = _mm256_xor_ps(offset, _mm256_set1_ps(-0.0F));
        for (int p = 0; p < P::kPieces; ++p, ++x) {
            const std::byte* piece = block + P::kQuantsOffset + p * P::kPieceBytes;
            const RoundedPiece* rows[Rows];
            __m256i dots[Rows];
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) {
                rows[r] = x + static_cast<std::size_t>(r) * x_stride;
                dots[r] = _mm256_setzero_si256();
            }
            const auto scales =
                load_piece_scales<P>(block + P::kSubScalesOffset + p * P::kSubScaleBytes);
            if constexpr (P::kBits == 8)
                add_signed_dots<Rows>(piece, rows, dots);
            else
                add_unsigned_dots<P, Rows>(piece, scales, rows, dots);
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) {
                const __m256i sums = broadcast_sums(*rows[r]);
                if constexpr (P::kOffset != 0)
                    dots[r] = _mm256_sub_epi32(dots[r], _mm256_madd_epi16(sums, scales.offsets));
                const __m256 d = _mm256_set1_ps(rows[r]->scale);
                acc[r] =
                    _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[r]), _mm256_mul_ps(scale, d), acc[r]);
                if constexpr (P::kHasMinimum) {
                    const __m256i sum = _mm256_madd_epi16(sums, scales.minima);
                    low[r] =
                        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(offset, d), low[r]);
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r)
        _mm256_storeu_ps(results + static_cast<std::size_t>(r) * kTileColumns,
                         P::kHasMinimum ? _mm256_add_ps(acc[r], low[r]) : acc[r]);
}

template <class F>
ARTEL_KERNEL_INLINE void multiply_tile(const MatMulTile<RoundedPiece>& tile) {
    for (std::size_t group = 0; group < tile.groups; ++group) {
        const std::byte* weights = tile.weights + group * group_bytes<F>(tile.columns);
        float* results = tile.results[0] + group * kGroupRows;
        switch (tile.rows) {
            case 1:
                multiply_group<F, 1>(weights, tile.columns, tile.x, tile.x_stride, results);
                break;
            case 2:
                multiply_group<F, 2>(weights, tile.columns, tile.x, tile.x_stride, results);
                break;
            case 3:
                multiply_group<F, 3>(weights, tile.columns, tile.x, tile.x_stride, results);
                break;
            default:
                multiply_group<F, 4>(weights, tile.columns, tile.x, tile.x_stride, results);
        }
    }
}

}  // namespace

void matmul_q4_0(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q4_0>(tile);
}
void matmul_q4_1(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q4_1>(tile);
}
void matmul_q5_0(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q5_0>(tile);
}
void matmul_q5_1(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q5_1>(tile);
}
void matmul_q8_0(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q8_0>(tile);
}
void matmul_q4_k(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q4_K>(tile);
}
void matmul_q5_k(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q5_K>(tile);
}
void matmul_q6_k(const MatMulTile<RoundedPiece>& tile) {
    multiply_tile<quant::Q6_K>(tile);
}

}  // namespace artel::cpu::avx2
