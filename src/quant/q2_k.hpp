// SPDX-License-Identifier: Apache-2.0
// Q2_K: 256 elements in 16 parts of 16, each with a 4-bit scale and a 4-bit minimum.
// value = (scale * part scale) * quant - (minimum * part minimum), quant in 0..3.
//
//   byte 0                         16                80     82        84
//        | 16 x (scale | min << 4) | 2 x 32 bytes    | f16  | f16     |
//        | one byte a part         | (two_bits.hpp)  | scale| minimum |
#pragma once

#include "quant/parts.hpp"
#include "quant/two_bits.hpp"

namespace artel::quant {

struct Q2_K {
    static constexpr const char* kName = "Q2_K";
    static constexpr std::uint32_t kGgufId = 10;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 16;
    struct Block {
        std::uint8_t parts[16];
        std::uint8_t quants[64];
        F16Bits scale;
        F16Bits minimum;
    };

    /// The 256 whole numbers, 0..3.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_two_bits(block.quants, quants);
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    ARTEL_KERNEL_INLINE static float block_minimum(const Block& block) {
        return f16_to_f32(block.minimum);
    }
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        for (int part = 0; part < 16; ++part)
            scales[part] = static_cast<std::int8_t>(block.parts[part] & 0x0F);
    }
    ARTEL_KERNEL_INLINE static void unpack_part_minima(const Block& block, std::int8_t* minima) {
        for (int part = 0; part < 16; ++part)
            minima[part] = static_cast<std::int8_t>(block.parts[part] >> 4);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<Q2_K>(block, floats);
    }
};
static_assert(sizeof(Q2_K::Block) == 84);

}  // namespace artel::quant
