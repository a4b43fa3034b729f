// SPDX-License-Identifier: Apache-2.0
// IQ2_XXS: 256 elements in 8 parts of 32: four grid entries of eight magnitudes, signs, a scale.
// value = (scale / 8 * (2 * part scale + 1)) * signed magnitude.
//
//   byte 0      2                                                            66
//        | f16  | 8 x 8 bytes, a part each:
//        | scale| 4 x grid index | 4 x 7 bits of signs, 4 bits of part scale |
#pragma once

#include "quant/grids_iq2.hpp"
#include "quant/parts.hpp"

namespace artel::quant {

/// One grid entry of the IQ2 formats with its signs: 8 whole numbers.
ARTEL_KERNEL_INLINE void unpack_iq2_entry(std::uint32_t entry, std::uint32_t signs,
                                          std::int8_t* quants) {
    for (int j = 0; j < 8; ++j)
        quants[j] = with_sign(kIq2Magnitudes[entry >> (2 * j) & 3], signs, j);
}

/// The 16 part scales of IQ2_XS and IQ2_S, 1..31: 2 * n + 1 of four bits n each, low halves first.
ARTEL_KERNEL_INLINE void unpack_iq2_scales(const std::uint8_t* packed, std::int8_t* scales) {
    for (int part = 0; part < 16; ++part)
        scales[part] =
            static_cast<std::int8_t>(2 * (packed[part / 2] >> (part % 2 * 4) & 0x0F) + 1);
}

struct IQ2_XXS {
    static constexpr const char* kName = "IQ2_XXS";
    static constexpr std::uint32_t kGgufId = 16;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 32;
    struct Block {
        F16Bits scale;
        struct Part {
            std::uint8_t indices[4];
            std::uint8_t signs_and_scale[4];
        } parts[8];
    };

    /// The 256 whole numbers: 8, 25 or 43 with a sign.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int part = 0; part < 8; ++part) {
            const std::uint32_t signs = four_bytes(block.parts[part].signs_and_scale);
            for (int l = 0; l < 4; ++l)
                unpack_iq2_entry(kIq2XxsGrid[block.parts[part].indices[l]],
                                 eight_signs(signs >> (7 * l) & 0x7F), quants + 32 * part + 8 * l);
        }
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale) * 0.125F;
    }
    /// 8 numbers, 1..31.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        for (int part = 0; part < 8; ++part)
            scales[part] =
                static_cast<std::int8_t>(2 * (block.parts[part].signs_and_scale[3] >> 4) + 1);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ2_XXS>(block, floats);
    }
};
static_assert(sizeof(IQ2_XXS::Block) == 66);

}  // namespace artel::quant
