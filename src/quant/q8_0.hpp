// SPDX-License-Identifier: Apache-2.0
// Q8_0: 32 elements, one scale. value = scale * quant, quant in -128..127.
//
//   byte 0      2           34
//        | f16  | 32 x int8 |
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

struct Q8_0 {
    static constexpr const char* kName = "Q8_0";
    static constexpr std::uint32_t kGgufId = 8;
    static constexpr int kBlockElements = 32;
    struct Block {
        F16Bits scale;
        std::int8_t quants[32];
    };

    /// The 32 whole numbers, -128..127.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int i = 0; i < kBlockElements; ++i) quants[i] = block.quants[i];
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        const float scale = f16_to_f32(block.scale);
        for (int i = 0; i < kBlockElements; ++i)
            floats[i] = static_cast<float>(block.quants[i]) * scale;
    }
};
static_assert(sizeof(Q8_0::Block) == 34);

}  // namespace artel::quant
