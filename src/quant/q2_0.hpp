// SPDX-License-Identifier: Apache-2.0
// Q2_0: 64 elements of two bits, one scale. value = scale * (quant - 1), quant in 0..3.
//
//   byte 0      2                                                     18
//        | f16  | 16 bytes: element i in bits 2 * (i % 4) of byte i / 4 |
#pragma once

#include "quant/parts.hpp"

namespace artel::quant {

struct Q2_0 {
    static constexpr const char* kName = "Q2_0";
    static constexpr std::uint32_t kGgufId = 42;
    static constexpr int kBlockElements = 64;
    static constexpr int kPartElements = kBlockElements;
    struct Block {
        F16Bits scale;
        std::uint8_t quants[16];
    };

    /// The 64 whole numbers, -1..2.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int i = 0; i < kBlockElements; ++i)
            quants[i] = static_cast<std::int8_t>((block.quants[i / 4] >> (i % 4 * 2) & 3) - 1);
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<Q2_0>(block, floats);
    }
};
static_assert(sizeof(Q2_0::Block) == 18);

}  // namespace artel::quant
