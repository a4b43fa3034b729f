// SPDX-License-Identifier: Apache-2.0
// MatMul over weights packed as codes: a lane is an output row, a byte a column. A code becomes
// its number by one shuffle: unsigned, number + offset, where that is at most 127, so that two
// products fit the int16 of vpmaddubsw (2 * 127 * 127 < 2^15) and the offset is taken off with the
// sum of the activations; else |number| times the activation with the number's sign.
#include "backends/cpu/matmul_codes.hpp"
#include "backends/cpu/packed_codes.hpp"
#include "backends/cpu/simd_avx2.hpp"

namespace artel::cpu::avx2 {

namespace {

/// Whether numbers are too large to be used unsigned.
template <class P>
consteval bool is_signed() {
    return P::kBits == 8 || P::unsigned_max() > 127;
}
/// How many runs of 4 columns a 16-bit lane can add up.
template <class P>
consteval int runs_a_sum() {
    if (is_signed<P>()) return 1;
    const int fits = 32767 / (2 * 127 * P::unsigned_max());
    const int runs = fits >= 8 ? 8 : fits >= 4 ? 4 : fits >= 2 ? 2 : 1;
    return P::kHasPartsOf16 && runs > 4 ? 4 : runs;
}

ARTEL_KERNEL_INLINE __m256i broadcast_four(const void* at) {
    std::int32_t four;
    __builtin_memcpy(&four, at, sizeof(four));
    return _mm256_set1_epi32(four);
}

/// The codes of run `run`, a constant after unrolling.
template <class P>
ARTEL_KERNEL_INLINE __m256i load_codes(const std::byte* piece, int run) {
    if constexpr (P::kBits == 8) {
        return load_bytes(piece + 32 * run);
    } else if constexpr (P::kBits == 4) {
        const __m256i two = load_bytes(piece + 32 * (run / 2));
        return _mm256_and_si256(_mm256_srli_epi16(two, run % 2 * 4), _mm256_set1_epi8(15));
    } else {
        const __m256i four = load_bytes(piece + 32 * (run / 4));
        __m256i codes = _mm256_and_si256(_mm256_srli_epi16(four, run % 4 * 2), _mm256_set1_epi8(3));
        if constexpr (P::kBits == 3) {
            const __m256i third = load_bytes(piece + 64);
            const __m256i moved =
                run < 2 ? _mm256_slli_epi16(third, 2 - run) : _mm256_srli_epi16(third, run - 2);
            codes = _mm256_or_si256(codes, _mm256_and_si256(moved, _mm256_set1_epi8(4)));
        }
        return codes;
    }
}

/// 16 numbers in each half of a register, plus the offset if they are used unsigned.
template <class P>
ARTEL_KERNEL_INLINE __m256i load_table() {
    alignas(16) std::int8_t numbers[16] = {};
    if constexpr (P::kBits != 8)
        for (int i = 0; i < 16; ++i)
            numbers[i] = static_cast<std::int8_t>(P::value(i % P::kCodes) +
                                                  (is_signed<P>() ? 0 : P::offset()));
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(numbers)));
}

template <class P>
ARTEL_KERNEL_INLINE __m256i numbers_of(__m256i codes, __m256i table) {
    if constexpr (P::kBits == 8 || (!is_signed<P>() && P::is_linear())) return codes;
    return _mm256_shuffle_epi8(table, codes);
}

/// Sums of two products, int16.
template <class P>
ARTEL_KERNEL_INLINE __m256i multiply_pairs(__m256i numbers, __m256i x) {
    if constexpr (is_signed<P>())
        return _mm256_maddubs_epi16(_mm256_abs_epi8(numbers), _mm256_sign_epi8(x, numbers));
    else
        return _mm256_maddubs_epi16(numbers, x);
}

/// Eight block scales.
template <class P>
ARTEL_KERNEL_INLINE __m256 load_block_scales(const std::byte* block) {
    if constexpr (P::kLayout.scale == BlockScale::F32) {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(block));
    } else if constexpr (P::kLayout.scale == BlockScale::E8M0) {
        // As quant::half_e8m0_to_f32.
        const __m256i exponent =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(block)));
        const __m256i normal =
            _mm256_slli_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(1)), 23);
        const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x0020'0000), exponent);
        const __m256i is_normal = _mm256_cmpgt_epi32(exponent, _mm256_set1_epi32(1));
        return _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, is_normal));
    } else if constexpr (P::kLayout.scale == BlockScale::F16) {
        const __m256 scales = load_f16(block);
        if constexpr (P::kLayout.divisor == 1) return scales;
        return _mm256_mul_ps(scales, _mm256_set1_ps(1.0F / static_cast<float>(P::kLayout.divisor)));
    } else {
        return _mm256_set1_ps(1);
    }
}

/// What a piece's sums are multiplied with: int16 pairs a lane, for its first and last 16 columns.
struct PieceFactors {
    __m256i first, last;     // scales, for the sums of two products
    __m256i offsets;         // (first, last) offset * scale
    __m256i minima;          // (first, last)
    __m256 scales_of_16[2];  // NVFP4
};

/// Words of parts of 16 (part_place) as pairs.
struct HalfPairs {
    __m256i first, last, both;
};
ARTEL_KERNEL_INLINE HalfPairs pair_halves(__m256i words) {
    return {_mm256_unpacklo_epi16(words, words), _mm256_unpackhi_epi16(words, words),
            _mm256_unpacklo_epi16(words, _mm256_bsrli_epi128(words, 8))};
}

template <class P>
ARTEL_KERNEL_INLINE __m256i times_offset(__m256i scales) {
    if constexpr (P::kBits == 8 || is_signed<P>())
        return scales;
    else
        return _mm256_mullo_epi16(scales, _mm256_set1_epi16(static_cast<short>(P::offset())));
}

template <class P>
ARTEL_KERNEL_INLINE PieceFactors load_factors(const std::byte* parts) {
    const __m256i ones = _mm256_set1_epi16(1);
    PieceFactors factors{ones, ones, ones, ones, {}};
    if constexpr (P::kParts == PartScales::PartsOf32) {
        const __m256i words =
            _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(parts)));
        factors.first = factors.last =
            _mm256_blend_epi16(words, _mm256_slli_epi32(words, 16), 0xAA);
        factors.offsets = factors.first;
    } else if constexpr (P::kParts == PartScales::PartsOf16) {
        const HalfPairs pairs = pair_halves(_mm256_cvtepi8_epi16(load_half(parts)));
        factors.first = pairs.first;
        factors.last = pairs.last;
        factors.offsets = pairs.both;
    } else if constexpr (P::kHasMinima) {
        const __m256i words = _mm256_cvtepu8_epi16(load_half(parts));
        const HalfPairs scales = pair_halves(_mm256_and_si256(words, _mm256_set1_epi16(15)));
        factors.first = scales.first;
        factors.last = scales.last;
        factors.offsets = scales.both;
        factors.minima = pair_halves(_mm256_srli_epi16(words, 4)).both;
    } else if constexpr (P::kParts == PartScales::Ue4m3) {
        // As quant::half_ue4m3_to_f32; 0x7F does not occur here.
        const __m256i codes =
            _mm256_and_si256(_mm256_cvtepu8_epi16(load_half(parts)), _mm256_set1_epi16(0x7F));
        const __m256i halves = _mm256_slli_epi16(codes, 7);
        const __m256i first = _mm256_permute4x64_epi64(halves, 0x08);
        const __m256i last = _mm256_permute4x64_epi64(halves, 0x0D);
        const __m256 factor = _mm256_set1_ps(128);
        factors.scales_of_16[0] =
            _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(first)), factor);
        factors.scales_of_16[1] =
            _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(last)), factor);
    }
    factors.offsets = times_offset<P>(factors.offsets);
    return factors;
}

/// The exact dots of a piece with `Rows` rows of x: of all 32 columns, or of 16 and 16 for NVFP4.
template <class P, int Rows>
ARTEL_KERNEL_INLINE void piece_dots(const std::byte* piece, __m256i table,
                                    const PieceFactors& factors, const RoundedPiece* const* x,
                                    __m256i (*dots)[Rows]) {
    constexpr int kRunsASum = runs_a_sum<P>();
    constexpr bool kIsSplit = P::kParts == PartScales::Ue4m3;
    __m256i sums[Rows];
#pragma GCC unroll 8
    for (int run = 0; run < 8; ++run) {
        const __m256i numbers = numbers_of<P>(load_codes<P>(piece, run), table);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
            const __m256i pairs =
                multiply_pairs<P>(numbers, broadcast_four(x[r]->quants + 4 * run));
            sums[r] = run % kRunsASum == 0 ? pairs : _mm256_add_epi16(sums[r], pairs);
            if ((run + 1) % kRunsASum != 0) continue;
            __m256i& dot = dots[kIsSplit ? run / 4 : 0][r];
            dot = _mm256_add_epi32(
                dot, _mm256_madd_epi16(sums[r], run < 4 ? factors.first : factors.last));
        }
    }
}

/// Minus offset times the sums of activations, where the dots begin.
template <class P, int Rows>
ARTEL_KERNEL_INLINE void begin_dots(const PieceFactors& factors, const RoundedPiece* const* x,
                                    __m256i (*dots)[Rows]) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
        dots[0][r] = dots[1][r] = _mm256_setzero_si256();
        if constexpr (is_signed<P>()) continue;
        const __m256i sums = broadcast_four(x[r]->sums);
        if constexpr (P::kParts == PartScales::Ue4m3) {
            const __m256i low = _mm256_set1_epi32(0xFFFF);
            dots[0][r] = _mm256_sub_epi32(
                dots[0][r], _mm256_madd_epi16(sums, _mm256_and_si256(factors.offsets, low)));
            dots[1][r] = _mm256_sub_epi32(
                dots[1][r], _mm256_madd_epi16(sums, _mm256_andnot_si256(low, factors.offsets)));
        } else if constexpr (!is_signed<P>()) {
            if constexpr (P::offset() != 0)
                dots[0][r] = _mm256_sub_epi32(dots[0][r], _mm256_madd_epi16(sums, factors.offsets));
        }
    }
}

/// One group of eight weight rows times `Rows` rows of x.
template <class F, int Rows>
ARTEL_KERNEL_INLINE void multiply_group(const std::byte* weights, std::size_t columns,
                                        const RoundedPiece* x, std::size_t x_stride,
                                        float* results) {
    using P = Packed<F>;
    const __m256i table = load_table<P>();
    __m256 acc[Rows];
    __m256 low[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) acc[r] = low[r] = _mm256_setzero_ps();
    const std::byte* const end = weights + group_bytes<F>(columns);
    for (const std::byte* block = weights; block < end; block += P::kBytes) {
        const __m256 scale = load_block_scales<P>(block);
        __m256 minimum = _mm256_setzero_ps();
        if constexpr (P::kHasMinima)
            minimum = _mm256_xor_ps(load_f16(block + P::kMinimumOffset), _mm256_set1_ps(-0.0F));
        for (int p = 0; p < P::kPieces; ++p, ++x) {
            const RoundedPiece* rows[Rows];
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) rows[r] = x + static_cast<std::size_t>(r) * x_stride;
            const PieceFactors factors =
                load_factors<P>(block + P::kPartsOffset + p * P::kPartBytes);
            __m256i dots[2][Rows];
            begin_dots<P, Rows>(factors, rows, dots);
            piece_dots<P, Rows>(block + P::kCodesOffset + p * P::kPieceBytes, table, factors, rows,
                                dots);
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) {
                const __m256 d = _mm256_set1_ps(rows[r]->scale);
                if constexpr (P::kParts == PartScales::Ue4m3) {
                    for (int half = 0; half < 2; ++half)
                        acc[r] =
                            _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[half][r]),
                                            _mm256_mul_ps(factors.scales_of_16[half], d), acc[r]);
                } else {
                    acc[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[0][r]),
                                             _mm256_mul_ps(scale, d), acc[r]);
                }
                if constexpr (P::kHasMinima) {
                    const __m256i sum =
                        _mm256_madd_epi16(broadcast_four(rows[r]->sums), factors.minima);
                    low[r] =
                        _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_mul_ps(minimum, d), low[r]);
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r)
        _mm256_storeu_ps(results + static_cast<std::size_t>(r) * kTileColumns,
                         P::kHasMinima ? _mm256_add_ps(acc[r], low[r]) : acc[r]);
}

template <class F>
void multiply(const MatMulTile<RoundedPiece>& tile) {
    for (std::size_t group = 0; group < tile.groups; ++group) {
        const std::byte* weights = tile.weights + group * group_bytes<F>(tile.columns);
        float* results = tile.results[0] + group * kGroupRows;
        std::size_t row = 0;
        for (; row + 4 <= tile.rows; row += 4)
            multiply_group<F, 4>(weights, tile.columns, tile.x + row * tile.x_stride, tile.x_stride,
                                 results + row * kTileColumns);
        for (; row + 2 <= tile.rows; row += 2)
            multiply_group<F, 2>(weights, tile.columns, tile.x + row * tile.x_stride, tile.x_stride,
                                 results + row * kTileColumns);
        for (; row < tile.rows; ++row)
            multiply_group<F, 1>(weights, tile.columns, tile.x + row * tile.x_stride, tile.x_stride,
                                 results + row * kTileColumns);
    }
}

}  // namespace

const RoundedMatMul kMatMulCodes[] = {
#define ARTEL_CODE_KERNEL(F) multiply<quant::F>,
    ARTEL_CODE_FORMATS(ARTEL_CODE_KERNEL)
#undef ARTEL_CODE_KERNEL
};

}  // namespace artel::cpu::avx2
