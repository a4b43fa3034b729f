// SPDX-License-Identifier: Apache-2.0
// IQ2_XS: 256 elements in 16 parts of 16: two grid entries of eight magnitudes with signs, a scale.
// value = (scale / 8 * (2 * part scale + 1)) * signed magnitude.
//
//   byte 0      2                                        66                               74
//        | f16  | 32 x (u16: 9 bits of grid index,       | 8 x (part scale 2i,            |
//        | scale| 7 bits of signs)                       | part scale 2i+1 << 4)          |
#pragma once

#include "quant/iq2_xxs.hpp"

namespace artel::quant {

struct IQ2_XS {
    static constexpr const char* kName = "IQ2_XS";
    static constexpr std::uint32_t kGgufId = 17;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 16;
    struct Block {
        F16Bits scale;
        std::uint8_t entries[32][2];
        std::uint8_t packed_scales[8];
    };

    /// The 256 whole numbers: 8, 25 or 43 with a sign.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int e = 0; e < 32; ++e) {
            const std::uint32_t entry = two_bytes(block.entries[e]);
            unpack_iq2_entry(kIq2XsGrid[entry & 0x1FF], eight_signs(entry >> 9), quants + 8 * e);
        }
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale) * 0.125F;
    }
    /// 16 numbers, 1..31.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        unpack_iq2_scales(block.packed_scales, scales);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ2_XS>(block, floats);
    }
};
static_assert(sizeof(IQ2_XS::Block) == 74);

}  // namespace artel::quant
