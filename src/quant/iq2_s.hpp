// SPDX-License-Identifier: Apache-2.0
// IQ2_S: 256 elements in 16 parts of 16: two grid entries of eight magnitudes with signs, a scale.
// value = (scale / 8 * (2 * part scale + 1)) * signed magnitude.
//
//   byte 0      2                  34              66                      74                   82
//        | f16  | 32 x low byte of | 32 x 8 signs  | 8 bytes: bits 8, 9 of | 8 x (part scale 2i,
//        | scale| grid index e     | of entry e    | entry 4i + l at 2l    | part scale 2i+1 << 4)
#pragma once

#include "quant/iq2_xxs.hpp"

namespace artel::quant {

struct IQ2_S {
    static constexpr const char* kName = "IQ2_S";
    static constexpr std::uint32_t kGgufId = 22;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 16;
    struct Block {
        F16Bits scale;
        std::uint8_t indices[32];
        std::uint8_t signs[32];
        std::uint8_t high_bits[8];
        std::uint8_t packed_scales[8];
    };

    /// The 256 whole numbers: 8, 25 or 43 with a sign.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int e = 0; e < 32; ++e) {
            const int high = block.high_bits[e / 4] >> (e % 4 * 2) & 3;
            unpack_iq2_entry(kIq2SGrid[block.indices[e] | high << 8], block.signs[e],
                             quants + 8 * e);
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
        decode_parts<IQ2_S>(block, floats);
    }
};
static_assert(sizeof(IQ2_S::Block) == 82);

}  // namespace artel::quant
