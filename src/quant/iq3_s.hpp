// SPDX-License-Identifier: Apache-2.0
// IQ3_S: 256 elements in 8 parts of 32: eight grid entries of four magnitudes with signs, a scale.
// value = (scale * (2 * part scale + 1)) * signed magnitude.
//
//   byte 0      2                  66                    74                 106                 110
//        | f16  | 64 x low byte of | 8 bytes: bit 8 of   | 32 x 8 signs of  | 4 x (part scale 2i,
//        | scale| grid index e     | entry 8i + l at l   | 8 elements       | part scale 2i+1 << 4)
#pragma once

#include "quant/grids_iq3.hpp"
#include "quant/parts.hpp"

namespace artel::quant {

struct IQ3_S {
    static constexpr const char* kName = "IQ3_S";
    static constexpr std::uint32_t kGgufId = 21;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 32;
    struct Block {
        F16Bits scale;
        std::uint8_t indices[64];
        std::uint8_t high_bits[8];
        std::uint8_t signs[32];
        std::uint8_t packed_scales[4];
    };

    /// The 256 whole numbers: odd, -15..15.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int e = 0; e < 64; ++e) {
            const int high = block.high_bits[e / 8] >> (e % 8) & 1;
            const int entry = kIq3SGrid[block.indices[e] | high << 8];
            for (int j = 0; j < 4; ++j)
                quants[4 * e + j] =
                    with_sign(2 * (entry >> (3 * j) & 7) + 1, block.signs[e / 2], e % 2 * 4 + j);
        }
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    /// 8 numbers, 1..31.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        for (int part = 0; part < 8; ++part) {
            const int scale = block.packed_scales[part / 2] >> (part % 2 * 4) & 0x0F;
            scales[part] = static_cast<std::int8_t>(2 * scale + 1);
        }
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ3_S>(block, floats);
    }
};
static_assert(sizeof(IQ3_S::Block) == 110);

}  // namespace artel::quant
