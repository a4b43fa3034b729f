// SPDX-License-Identifier: Apache-2.0
// IQ3_XXS: 256 elements in 8 parts of 32: eight grid entries of four magnitudes, signs, a scale.
// value = (scale / 4 * (2 * part scale + 1)) * signed magnitude.
//
//   byte 0      2                 66                                                         98
//        | f16  | 64 x grid index | 8 x (u32: 4 x 7 bits of signs of eight elements each,
//        | scale|                 | 4 bits of part scale)
#pragma once

#include "quant/grids_iq3.hpp"
#include "quant/parts.hpp"

namespace artel::quant {

struct IQ3_XXS {
    static constexpr const char* kName = "IQ3_XXS";
    static constexpr std::uint32_t kGgufId = 18;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 32;
    struct Block {
        F16Bits scale;
        std::uint8_t indices[64];
        std::uint8_t signs_and_scales[8][4];
    };

    /// The 256 whole numbers: kIq3XxsMagnitudes with a sign.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int e = 0; e < 64; ++e) {
            const std::uint32_t entry = kIq3XxsGrid[block.indices[e]];
            const std::uint32_t sevens = four_bytes(block.signs_and_scales[e / 8]);
            const std::uint32_t signs = eight_signs(sevens >> (e % 8 / 2 * 7) & 0x7F);
            for (int j = 0; j < 4; ++j)
                quants[4 * e + j] =
                    with_sign(kIq3XxsMagnitudes[entry >> (3 * j) & 7], signs, e % 2 * 4 + j);
        }
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale) * 0.25F;
    }
    /// 8 numbers, 1..31.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        for (int part = 0; part < 8; ++part)
            scales[part] = static_cast<std::int8_t>(2 * (block.signs_and_scales[part][3] >> 4) + 1);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ3_XXS>(block, floats);
    }
};
static_assert(sizeof(IQ3_XXS::Block) == 98);

}  // namespace artel::quant
