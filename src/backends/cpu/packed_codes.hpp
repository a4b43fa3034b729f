// SPDX-License-Identifier: Apache-2.0
// How weights of formats lie in memory here whose values come from a small table: quants become
// codes of 2, 3 or 4 bits (8 for Q8_K), so that a grid of the file is looked up once, when weights
// are loaded, and a kernel needs one shuffle. As in packed_format.hpp eight rows are interleaved,
// rows past the last one are zero. Decoding gives the bits of the format's own decode.
//
// A group is a run of packed blocks, each kElements columns of eight rows:
//   scale        8 x f16, f32 or E8M0 byte as in the file; none for NVFP4
//   minimum      8 x f16, where the format has one
//   part scales  parts of 32: per 32 columns 8 bytes, one a row.  parts of 16: per 32 columns 16
//                bytes; part h (0 or 1) of row r in byte r / 4 * 8 + h * 4 + r % 4.
//                Signed; Q2_K: scale | minimum << 4; NVFP4: UE4M3
//   codes        one piece per 32 columns, cut into 8 runs of 4 columns; byte 4 * row + j of a
//                register of 32 bytes belongs to column 4 * run + j
//                2 bits: 2 registers, run r in bits 2(r % 4) of register r / 4
//                3 bits: the same, then one register whose bit r is the third bit of run r
//                4 bits: 4 registers, run 2v in the low and 2v + 1 in the high half of register v
//                8 bits: 8 registers, the quants themselves
#pragma once

#include <cstring>

#include "backends/cpu/packed_format.hpp"
#include "quant/iq1_m.hpp"
#include "quant/iq2_s.hpp"
#include "quant/iq2_xs.hpp"
#include "quant/iq3_s.hpp"
#include "quant/iq3_xxs.hpp"
#include "quant/iq4_xs.hpp"
#include "quant/nvfp4.hpp"
#include "quant/q1_0.hpp"
#include "quant/q2_0.hpp"
#include "quant/q2_k.hpp"
#include "quant/q3_k.hpp"
#include "quant/q8_k.hpp"
#include "quant/tq1_0.hpp"
#include "quant/tq2_0.hpp"

// clang-format off
/// Formats packed as codes, in the order of the tables of kernels.
#define ARTEL_CODE_FORMATS(X) \
    X(Q2_K)    \
    X(Q3_K)    \
    X(Q8_K)    \
    X(IQ1_S)   \
    X(IQ1_M)   \
    X(IQ2_XXS) \
    X(IQ2_XS)  \
    X(IQ2_S)   \
    X(IQ3_XXS) \
    X(IQ3_S)   \
    X(IQ4_NL)  \
    X(IQ4_XS)  \
    X(TQ1_0)   \
    X(TQ2_0)   \
    X(Q1_0)    \
    X(Q2_0)    \
    X(MXFP4)   \
    X(NVFP4)
// clang-format on

namespace artel::cpu {

enum class BlockScale : std::uint8_t { None, F16, F32, E8M0 };
enum class PartScales : std::uint8_t { None, PartsOf32, PartsOf16, PartsOf16WithMinima, Ue4m3 };

struct CodeLayout {
    int bits;
    BlockScale scale;
    int divisor;  // of the block scale: a power of two
    PartScales parts;
};

// What the codes stand for; entries that a format never has repeat another one.
inline constexpr std::int8_t kCodesFrom0[4] = {0, 1, 2, 3};
inline constexpr std::int8_t kCodesFromMinus1[4] = {-1, 0, 1, 2};
inline constexpr std::int8_t kCodesFromMinus4[8] = {-4, -3, -2, -1, 0, 1, 2, 3};
inline constexpr std::int8_t kCodesOfIq1[8] = {-9, -7, -1, 1, 7, 9, 9, 9};
inline constexpr std::int8_t kCodesOfIq2[8] = {-43, -25, -8, 8, 25, 43, 43, 43};
inline constexpr std::int8_t kCodesOfIq3Xxs[16] = {-62, -52, -44, -36, -28, -20, -12, -4,
                                                   4,   12,  20,  28,  36,  44,  52,  62};
inline constexpr std::int8_t kCodesOfIq3S[16] = {-15, -13, -11, -9, -7, -5, -3, -1,
                                                 1,   3,   5,   7,  9,  11, 13, 15};

consteval int code_unit(BlockScale scale) {  // bytes a row
    return scale == BlockScale::None   ? 0
           : scale == BlockScale::E8M0 ? 1
           : scale == BlockScale::F16  ? 2
                                       : 4;
}
consteval int part_scale_bytes(PartScales parts) {  // a piece of eight rows
    return parts == PartScales::None ? 0 : parts == PartScales::PartsOf32 ? 8 : 16;
}

template <class F, CodeLayout Layout, const std::int8_t* Values>
struct PackedCodes {
    static constexpr bool kIsInteger = true;
    static constexpr CodeLayout kLayout = Layout;
    static constexpr int kBits = Layout.bits;
    static constexpr PartScales kParts = Layout.parts;
    static constexpr bool kHasMinima = kParts == PartScales::PartsOf16WithMinima;
    static constexpr bool kHasPartsOf16 =
        kHasMinima || kParts == PartScales::PartsOf16 || kParts == PartScales::Ue4m3;
    static constexpr int kElements = F::kBlockElements;
    static constexpr int kPieces = kElements / kPieceColumns;
    static constexpr int kMinimumOffset = kGroupRows * code_unit(Layout.scale);
    static constexpr int kPartsOffset = kMinimumOffset + (kHasMinima ? 2 * kGroupRows : 0);
    static constexpr int kPartBytes = part_scale_bytes(kParts);  // a piece
    static constexpr int kCodesOffset = kPartsOffset + kPieces * kPartBytes;
    static constexpr int kPieceBytes = kPieceColumns * kGroupRows * kBits / 8;
    static constexpr int kBytes = kCodesOffset + kPieces * kPieceBytes;
    static constexpr int kCodes = kBits == 8 ? 1 : 1 << kBits;

    /// What a code stands for. Not for 8 bits, where it is the number itself.
    ARTEL_KERNEL_INLINE static constexpr int value(int code) { return Values[code]; }
    /// The smallest value is -offset(), so value + offset() is unsigned.
    ARTEL_KERNEL_INLINE static constexpr int offset() {
        int smallest = Values[0];
        for (int code = 1; code < kCodes; ++code)
            smallest = Values[code] < smallest ? Values[code] : smallest;
        return -smallest;
    }
    /// The largest value + offset().
    ARTEL_KERNEL_INLINE static constexpr int unsigned_max() {
        int largest = Values[0];
        for (int code = 1; code < kCodes; ++code)
            largest = Values[code] > largest ? Values[code] : largest;
        return largest + offset();
    }
    /// Whether value + offset() is the code itself.
    ARTEL_KERNEL_INLINE static constexpr bool is_linear() {
        for (int code = 0; code < kCodes; ++code)
            if (Values[code] + offset() != code) return false;
        return true;
    }
};

template <class F>
inline constexpr bool kIsPackedAsCodes = requires {
    Packed<F>::kLayout;
};

#define ARTEL_PACKED_CODES(F, bits, scale, divisor, parts, values)                               \
    template <>                                                                                  \
    struct Packed<quant::F>                                                                      \
        : PackedCodes<quant::F, CodeLayout{bits, BlockScale::scale, divisor, PartScales::parts}, \
                      values> {};
// clang-format off
ARTEL_PACKED_CODES(Q2_K,    2, F16,  1, PartsOf16WithMinima, kCodesFrom0)
ARTEL_PACKED_CODES(Q3_K,    3, F16,  1, PartsOf16,           kCodesFromMinus4)
ARTEL_PACKED_CODES(Q8_K,    8, F32,  1, None,                kCodesFrom0)
ARTEL_PACKED_CODES(IQ1_S,   3, F16,  8, PartsOf32,           kCodesOfIq1)
ARTEL_PACKED_CODES(IQ1_M,   3, F16,  8, PartsOf16,           kCodesOfIq1)
ARTEL_PACKED_CODES(IQ2_XXS, 3, F16,  8, PartsOf32,           kCodesOfIq2)
ARTEL_PACKED_CODES(IQ2_XS,  3, F16,  8, PartsOf16,           kCodesOfIq2)
ARTEL_PACKED_CODES(IQ2_S,   3, F16,  8, PartsOf16,           kCodesOfIq2)
ARTEL_PACKED_CODES(IQ3_XXS, 4, F16,  4, PartsOf32,           kCodesOfIq3Xxs)
ARTEL_PACKED_CODES(IQ3_S,   4, F16,  1, PartsOf32,           kCodesOfIq3S)
ARTEL_PACKED_CODES(IQ4_NL,  4, F16,  1, None,                quant::kIq4Values)
ARTEL_PACKED_CODES(IQ4_XS,  4, F16,  1, PartsOf32,           quant::kIq4Values)
ARTEL_PACKED_CODES(TQ1_0,   2, F16,  1, None,                kCodesFromMinus1)
ARTEL_PACKED_CODES(TQ2_0,   2, F16,  1, None,                kCodesFromMinus1)
ARTEL_PACKED_CODES(Q1_0,    2, F16,  1, None,                kCodesFromMinus1)
ARTEL_PACKED_CODES(Q2_0,    2, F16,  1, None,                kCodesFromMinus1)
ARTEL_PACKED_CODES(MXFP4,   4, E8M0, 1, None,                quant::kFp4Values)
ARTEL_PACKED_CODES(NVFP4,   4, None, 1, Ue4m3,               quant::kFp4Values)
// clang-format on
#undef ARTEL_PACKED_CODES

/// Place of a format's kernels in their tables.
enum class CodeKernel : std::uint8_t {
#define ARTEL_CODE_ENUMERATOR(F) F,
    ARTEL_CODE_FORMATS(ARTEL_CODE_ENUMERATOR)
#undef ARTEL_CODE_ENUMERATOR
};
template <class F>
inline constexpr CodeKernel kCodeKernel{};
#define ARTEL_CODE_PLACE(F) \
    template <>             \
    inline constexpr CodeKernel kCodeKernel<quant::F> = CodeKernel::F;
ARTEL_CODE_FORMATS(ARTEL_CODE_PLACE)
#undef ARTEL_CODE_PLACE

/// Where part scale `half` of row `row` lies among those of a piece.
ARTEL_KERNEL_INLINE constexpr std::size_t part_place(bool has_parts_of_16, std::size_t half,
                                                     std::size_t row) {
    return has_parts_of_16 ? row / 4 * 8 + half * 4 + row % 4 : row;
}

/// The block scale of a row, constant divisor included: what F::block_scale gives.
template <class P>
ARTEL_KERNEL_INLINE float packed_block_scale(const std::byte* packed, std::size_t row) {
    if constexpr (P::kLayout.scale == BlockScale::F32) {
        float scale;
        std::memcpy(&scale, packed + 4 * row, sizeof(scale));
        return scale;
    } else if constexpr (P::kLayout.scale == BlockScale::E8M0) {
        return quant::half_e8m0_to_f32(static_cast<std::uint8_t>(packed[row]));
    } else if constexpr (P::kLayout.scale == BlockScale::F16) {
        quant::F16Bits bits;
        std::memcpy(&bits, packed + 2 * row, sizeof(bits));
        return quant::f16_to_f32(bits) * (1.0F / static_cast<float>(P::kLayout.divisor));
    } else {
        return 1;
    }
}

/// The 32 whole numbers of a row of a piece.
template <class P>
ARTEL_KERNEL_INLINE void unpack_codes(const std::byte* piece, std::size_t row,
                                      std::int8_t* quants) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(piece) + 4 * row;
    for (int run = 0; run < 8; ++run)
        for (int j = 0; j < 4; ++j) {
            int code = 0;
            if constexpr (P::kBits == 8) {
                quants[4 * run + j] = static_cast<std::int8_t>(bytes[32 * run + j]);
                continue;
            } else if constexpr (P::kBits == 4) {
                code = bytes[run / 2 * 32 + j] >> (run % 2 * 4) & 15;
            } else {
                code = bytes[run / 4 * 32 + j] >> (run % 4 * 2) & 3;
                if constexpr (P::kBits == 3) code |= (bytes[64 + j] >> run & 1) << 2;
            }
            quants[4 * run + j] = static_cast<std::int8_t>(P::value(code));
        }
}

}  // namespace artel::cpu
