// SPDX-License-Identifier: Apache-2.0
// Q4_0: 32 elements, one scale. value = scale * (quant - 8), quant in 0..15.
//
//   byte 0      2                          18
//        | f16  | 16 x (element i | element i+16 << 4) |
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

struct Q4_0 {
    static constexpr const char* kName = "Q4_0";
    static constexpr std::uint32_t kGgufId = 2;
    static constexpr int kBlockElements = 32;
    struct Block {
        F16Bits scale;
        std::uint8_t quants[16];
    };

    /// The 32 whole numbers, -8..7.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_nibbles(block.quants, 16, quants);
        for (int i = 0; i < kBlockElements; ++i)
            quants[i] = static_cast<std::int8_t>(quants[i] - 8);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        const float scale = f16_to_f32(block.scale);
        std::int8_t quants[kBlockElements];
        unpack(block, quants);
        for (int i = 0; i < kBlockElements; ++i) floats[i] = static_cast<float>(quants[i]) * scale;
    }
};
static_assert(sizeof(Q4_0::Block) == 18);

}  // namespace artel::quant
