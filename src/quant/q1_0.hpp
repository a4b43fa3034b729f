// SPDX-License-Identifier: Apache-2.0
// Q1_0: 128 elements of one bit, one scale. value = scale where the bit is set, else -scale.
//
//   byte 0      2                                         18
//        | f16  | 16 bytes: element i in bit i % 8 of byte i / 8 |
#pragma once

#include "quant/parts.hpp"

namespace artel::quant {

struct Q1_0 {
    static constexpr const char* kName = "Q1_0";
    static constexpr std::uint32_t kGgufId = 41;
    static constexpr int kBlockElements = 128;
    static constexpr int kPartElements = kBlockElements;
    struct Block {
        F16Bits scale;
        std::uint8_t bits[16];
    };

    /// The 128 whole numbers, -1 or 1.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int i = 0; i < kBlockElements; ++i)
            quants[i] = static_cast<std::int8_t>(2 * (block.bits[i / 8] >> (i % 8) & 1) - 1);
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<Q1_0>(block, floats);
    }
};
static_assert(sizeof(Q1_0::Block) == 18);

}  // namespace artel::quant
