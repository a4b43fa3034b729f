// SPDX-License-Identifier: Apache-2.0
// Q5_0: 32 elements, one scale. value = scale * (quant - 16), quant in 0..31.
//
//   byte 0      2                    6                          22
//        | f16  | bit i: fifth bit   | 16 x (element i | element i+16 << 4) |
//        | scale| of element i       | (low four bits)
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

/// Adds the fifth bits of 32 elements, one bit each, to their low four bits.
ARTEL_KERNEL_INLINE void add_fifth_bits(const std::uint8_t* packed, std::int8_t* quants) {
    for (int i = 0; i < 32; ++i)
        quants[i] = static_cast<std::int8_t>(quants[i] | (packed[i / 8] >> (i % 8) & 1) << 4);
}

struct Q5_0 {
    static constexpr const char* kName = "Q5_0";
    static constexpr std::uint32_t kGgufId = 6;
    static constexpr int kBlockElements = 32;
    struct Block {
        F16Bits scale;
        std::uint8_t high_bits[4];
        std::uint8_t quants[16];
    };

    /// The 32 whole numbers, -16..15.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_nibbles(block.quants, 16, quants);
        add_fifth_bits(block.high_bits, quants);
        for (int i = 0; i < kBlockElements; ++i)
            quants[i] = static_cast<std::int8_t>(quants[i] - 16);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        const float scale = f16_to_f32(block.scale);
        std::int8_t quants[kBlockElements];
        unpack(block, quants);
        for (int i = 0; i < kBlockElements; ++i) floats[i] = static_cast<float>(quants[i]) * scale;
    }
};
static_assert(sizeof(Q5_0::Block) == 22);

}  // namespace artel::quant
