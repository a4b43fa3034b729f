// SPDX-License-Identifier: Apache-2.0
// Q8_K: 256 elements, one float scale. value = scale * quant, quant in -128..127.
//
//   byte 0      4            260                                     292
//        | f32  | 256 x int8 | 16 x int16: sums of 16 quants, unused |
#pragma once

#include "quant/parts.hpp"

namespace artel::quant {

struct Q8_K {
    static constexpr const char* kName = "Q8_K";
    static constexpr std::uint32_t kGgufId = 15;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = kBlockElements;
    struct Block {
        float scale;
        std::int8_t quants[256];
        std::int16_t sums[16];
    };

    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int i = 0; i < kBlockElements; ++i) quants[i] = block.quants[i];
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) { return block.scale; }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<Q8_K>(block, floats);
    }
};
static_assert(sizeof(Q8_K::Block) == 292);

}  // namespace artel::quant
