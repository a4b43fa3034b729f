// SPDX-License-Identifier: Apache-2.0
// IQ4_NL: 32 elements, one scale. value = scale * kIq4Values[code], code in 0..15.
//
//   byte 0      2                                     18
//        | f16  | 16 x (element i | element i+16 << 4) |
#pragma once

#include "quant/parts.hpp"

namespace artel::quant {

/// What the codes of IQ4_NL and IQ4_XS stand for (see NOTICE).
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

struct IQ4_NL {
    static constexpr const char* kName = "IQ4_NL";
    static constexpr std::uint32_t kGgufId = 20;
    static constexpr int kBlockElements = 32;
    static constexpr int kPartElements = kBlockElements;
    struct Block {
        F16Bits scale;
        std::uint8_t codes[16];
    };

    /// The 32 whole numbers, -127..113.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_nibbles(block.codes, 16, quants);
        for (int i = 0; i < kBlockElements; ++i) quants[i] = kIq4Values[quants[i]];
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ4_NL>(block, floats);
    }
};
static_assert(sizeof(IQ4_NL::Block) == 18);

}  // namespace artel::quant
