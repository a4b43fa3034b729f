// SPDX-License-Identifier: Apache-2.0
// IQ1_M: 256 elements in 16 parts of 16: two grid entries of eight trits, each with a shift of
// +-1/8, and a scale. value = (scale / 8 * (2 * part scale + 1)) * (8 * trit + shift).
//
//   byte 0                  32                                    48                          56
//        | 32 x low byte of | 16 x two entries: 3 upper bits of   | 4 x (u16: 4 x 3 bits of part
//        | grid index e     | the index, 1 bit: shift is negative | scale, 4 bits of the scale)
//
// The f16 scale is the upper four bits of the four u16, the first one lowest.
#pragma once

#include "quant/iq1_s.hpp"

namespace artel::quant {

struct IQ1_M {
    static constexpr const char* kName = "IQ1_M";
    static constexpr std::uint32_t kGgufId = 29;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 16;
    struct Block {
        std::uint8_t indices[32];
        std::uint8_t high_bits[16];
        std::uint8_t packed_scales[4][2];
    };

    /// The 256 whole numbers: -9, -7, -1, 1, 7, 9.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int e = 0; e < 32; ++e) {
            const auto high = static_cast<std::uint32_t>(block.high_bits[e / 2] >> (e % 2 * 4));
            unpack_iq1_entry(block.indices[e] | (high & 7) << 8, (high & 8) != 0, quants + 8 * e);
        }
    }
    ARTEL_KERNEL_INLINE static F16Bits scale_bits(const Block& block) {
        std::uint32_t bits = 0;
        for (int i = 0; i < 4; ++i) bits |= two_bytes(block.packed_scales[i]) >> 12 << (4 * i);
        return static_cast<F16Bits>(bits);
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(scale_bits(block)) * 0.125F;
    }
    /// 16 numbers, 1..15.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        for (int part = 0; part < 16; ++part) {
            const auto four = static_cast<int>(two_bytes(block.packed_scales[part / 4]));
            scales[part] = static_cast<std::int8_t>(2 * (four >> (part % 4 * 3) & 7) + 1);
        }
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ1_M>(block, floats);
    }
};
static_assert(sizeof(IQ1_M::Block) == 56);

}  // namespace artel::quant
