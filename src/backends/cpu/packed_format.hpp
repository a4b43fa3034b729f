// SPDX-License-Identifier: Apache-2.0
// How the weights of a matmul lie in memory here: eight output rows interleaved, so that one lane
// of a register is one row and the loop over columns is the same for scalar and vector code. Rows
// past the last one are zero. Shared by kernels of every instruction set: constants and inlined
// functions only.
//
// A group of integer formats is a run of packed blocks, each kBlockElements columns of eight rows:
//
//   f16 scale[8] | f16 minimum[8], if any | sub-scales, if any | quants: one piece per 32 columns
//
//   sub-scales  parts of 32 (Q4_K, Q5_K): per part u8 scale[8], u8 minimum[8]
//               parts of 16 (Q6_K):       per 32 columns i8 scale[8] of the first 16, then [8]
//   quants      unsigned, quant + kOffset. Cut into 8 runs of 4 columns; byte 4 * row + j of run r
//               belongs to column 4r + j (a register of 32 bytes).
//               4 bits: 4 registers, run 2v in the low and 2v + 1 in the high half of register v
//               5 bits: the same, then one register whose bit r is the fifth bit of run r
//               6 bits: the same, then two registers; bits 2(r % 4) of register r / 4 are the upper
//               two of run r.   8 bits: 8 registers, signed, as they are
//
// A group of float formats is, column after column, the eight rows' values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/bf16.hpp"
#include "quant/f16.hpp"
#include "quant/f32.hpp"
#include "quant/q4_0.hpp"
#include "quant/q4_1.hpp"
#include "quant/q4_k.hpp"
#include "quant/q5_0.hpp"
#include "quant/q5_1.hpp"
#include "quant/q5_k.hpp"
#include "quant/q6_k.hpp"
#include "quant/q8_0.hpp"

namespace artel::cpu {

inline constexpr int kGroupRows = 8;
inline constexpr int kPieceColumns = 32;   // activations are rounded in pieces of this many
inline constexpr int kRegisterBytes = 32;  // eight rows, four columns, one byte each

enum class SubScales : std::uint8_t { None, PartsOf32, PartsOf16 };

/// What differs between packed integer formats.
template <int Bits, int Offset, bool HasMinimum, SubScales Sub, int Elements>
struct PackedInteger {
    static constexpr bool kIsInteger = true;
    static constexpr int kBits = Bits;
    static constexpr int kOffset = Offset;
    static constexpr bool kHasMinimum = HasMinimum;
    static constexpr SubScales kSubScales = Sub;
    static constexpr int kElements = Elements;  // columns of a packed block
    static constexpr int kPieces = Elements / kPieceColumns;
    static constexpr int kMinimumOffset = 2 * kGroupRows;
    static constexpr int kSubScalesOffset = (HasMinimum ? 4 : 2) * kGroupRows;
    static constexpr int kSubScaleBytes = Sub == SubScales::None ? 0 : 2 * kGroupRows;  // a piece
    static constexpr int kQuantsOffset = kSubScalesOffset + kPieces * kSubScaleBytes;
    static constexpr int kPieceBytes = kPieceColumns * kGroupRows * Bits / 8;
    static constexpr int kBytes = kQuantsOffset + kPieces * kPieceBytes;
};

struct PackedFloat {
    static constexpr bool kIsInteger = false;
};

template <class F>
struct Packed;
// clang-format off
template <> struct Packed<quant::F32>  : PackedFloat {};
template <> struct Packed<quant::F16>  : PackedFloat {};
template <> struct Packed<quant::BF16> : PackedFloat {};
template <> struct Packed<quant::Q4_0> : PackedInteger<4, 8,  false, SubScales::None, 32> {};
template <> struct Packed<quant::Q4_1> : PackedInteger<4, 0,  true,  SubScales::None, 32> {};
template <> struct Packed<quant::Q5_0> : PackedInteger<5, 16, false, SubScales::None, 32> {};
template <> struct Packed<quant::Q5_1> : PackedInteger<5, 0,  true,  SubScales::None, 32> {};
template <> struct Packed<quant::Q8_0> : PackedInteger<8, 0,  false, SubScales::None, 32> {};
template <> struct Packed<quant::Q4_K> : PackedInteger<4, 0,  true,  SubScales::PartsOf32, 256> {};
template <> struct Packed<quant::Q5_K> : PackedInteger<5, 0,  true,  SubScales::PartsOf32, 256> {};
template <> struct Packed<quant::Q6_K> : PackedInteger<6, 32, false, SubScales::PartsOf16, 256> {};
// clang-format on

/// Bytes of a group of eight rows of `columns` elements, which are whole blocks of F.
template <class F>
ARTEL_KERNEL_INLINE constexpr std::size_t group_bytes(std::size_t columns) {
    if constexpr (Packed<F>::kIsInteger)
        return columns / Packed<F>::kElements * Packed<F>::kBytes;
    else
        return columns * kGroupRows * sizeof(typename F::Block);
}

/// Puts `value` into the bits `mask << shift` of a byte.
ARTEL_KERNEL_INLINE void set_bits(std::byte& byte, int mask, int value, int shift) {
    byte = (byte & ~static_cast<std::byte>(mask << shift)) | static_cast<std::byte>(value << shift);
}

}  // namespace artel::cpu
