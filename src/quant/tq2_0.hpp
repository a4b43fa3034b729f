// SPDX-License-Identifier: Apache-2.0
// TQ2_0: 256 trits in two bits each, one scale. value = scale * (quant - 1), quant in 0..3.
//
//   byte 0                             64     66
//        | 2 x 32 bytes (two_bits.hpp) | f16  |
#pragma once

#include "quant/parts.hpp"
#include "quant/two_bits.hpp"

namespace artel::quant {

struct TQ2_0 {
    static constexpr const char* kName = "TQ2_0";
    static constexpr std::uint32_t kGgufId = 35;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = kBlockElements;
    struct Block {
        std::uint8_t quants[64];
        F16Bits scale;
    };

    /// The 256 whole numbers, -1..2.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_two_bits(block.quants, quants);
        for (int i = 0; i < kBlockElements; ++i) --quants[i];
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<TQ2_0>(block, floats);
    }
};
static_assert(sizeof(TQ2_0::Block) == 66);

}  // namespace artel::quant
