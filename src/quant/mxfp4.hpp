// SPDX-License-Identifier: Apache-2.0
// MXFP4 (OCP microscaling, E2M1 elements with an E8M0 scale): 32 elements, a power of two.
// value = 2^(exponent - 128) * kFp4Values[code]; the values are twice those of E2M1.
//
//   byte 0          1                                     17
//        | exponent | 16 x (element i | element i+16 << 4) |
#pragma once

#include "quant/parts.hpp"

namespace artel::quant {

/// Twice the E2M1 number of each code, which makes whole numbers of all.
inline constexpr std::int8_t kFp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                               0, -1, -2, -3, -4, -6, -8, -12};

/// 2^(exponent - 128), subnormal for 0 and 1; 255, NaN in E8M0, counts as a number in GGUF.
ARTEL_KERNEL_INLINE float half_e8m0_to_f32(std::uint8_t exponent) {
    const std::uint32_t bits =
        exponent < 2 ? 0x0020'0000U << exponent : (std::uint32_t{exponent} - 1) << 23;
    return __builtin_bit_cast(float, bits);
}

struct MXFP4 {
    static constexpr const char* kName = "MXFP4";
    static constexpr std::uint32_t kGgufId = 39;
    static constexpr int kBlockElements = 32;
    static constexpr int kPartElements = kBlockElements;
    struct Block {
        std::uint8_t exponent;
        std::uint8_t codes[16];
    };

    /// The 32 whole numbers, -12..12.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_nibbles(block.codes, 16, quants);
        for (int i = 0; i < kBlockElements; ++i) quants[i] = kFp4Values[quants[i]];
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return half_e8m0_to_f32(block.exponent);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<MXFP4>(block, floats);
    }
};
static_assert(sizeof(MXFP4::Block) == 17);

}  // namespace artel::quant
