// SPDX-License-Identifier: Apache-2.0
// Q5_1: 32 elements, a scale and a minimum. value = scale * quant + minimum, quant in 0..31.
//
//   byte 0      2         4                    8                          24
//        | f16  | f16     | bit i: fifth bit   | 16 x (element i | element i+16 << 4) |
//        | scale| minimum | of element i       | (low four bits)
#pragma once

#include "quant/q5_0.hpp"

namespace artel::quant {

struct Q5_1 {
    static constexpr const char* kName = "Q5_1";
    static constexpr std::uint32_t kGgufId = 7;
    static constexpr int kBlockElements = 32;
    struct Block {
        F16Bits scale;
        F16Bits minimum;
        std::uint8_t high_bits[4];
        std::uint8_t quants[16];
    };

    /// The 32 whole numbers, 0..31.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_nibbles(block.quants, 16, quants);
        add_fifth_bits(block.high_bits, quants);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        const float scale = f16_to_f32(block.scale);
        const float minimum = f16_to_f32(block.minimum);
        std::int8_t quants[kBlockElements];
        unpack(block, quants);
        for (int i = 0; i < kBlockElements; ++i)
            floats[i] = static_cast<float>(quants[i]) * scale + minimum;
    }
};
static_assert(sizeof(Q5_1::Block) == 24);

}  // namespace artel::quant
