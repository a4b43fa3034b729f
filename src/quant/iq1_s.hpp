// SPDX-License-Identifier: Apache-2.0
// IQ1_S: 256 elements in 8 parts of 32: four grid entries of eight trits, one shift of +-1/8, a
// scale. value = (scale / 8 * (2 * part scale + 1)) * (8 * trit + shift), shift 1 or -1.
//
//   byte 0      2                  34                                                        50
//        | f16  | 32 x low byte of | 8 x (u16: 4 x 3 upper bits of the indices, 3 bits of part
//        | scale| grid index       | scale, 1 bit: the shift is negative)
#pragma once

#include "quant/grids_iq1.hpp"
#include "quant/parts.hpp"

namespace artel::quant {

/// One grid entry of the IQ1 formats: 8 whole numbers, 8 * trit + shift.
ARTEL_KERNEL_INLINE void unpack_iq1_entry(std::uint32_t index, bool is_negative,
                                          std::int8_t* quants) {
    for (int j = 0; j < 8; ++j) {
        const int trit = static_cast<int>(kIq1Grid[index] >> (2 * j) & 3) - 1;
        quants[j] = static_cast<std::int8_t>(8 * trit + (is_negative ? -1 : 1));
    }
}

struct IQ1_S {
    static constexpr const char* kName = "IQ1_S";
    static constexpr std::uint32_t kGgufId = 19;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 32;
    struct Block {
        F16Bits scale;
        std::uint8_t indices[32];
        std::uint8_t high_bits[8][2];
    };

    /// The 256 whole numbers: -9, -7, -1, 1, 7, 9.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int e = 0; e < 32; ++e) {
            const std::uint32_t high = two_bytes(block.high_bits[e / 4]);
            const std::uint32_t index = block.indices[e] | (high >> (e % 4 * 3) & 7) << 8;
            unpack_iq1_entry(index, (high & 0x8000) != 0, quants + 8 * e);
        }
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale) * 0.125F;
    }
    /// 8 numbers, 1..15.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        for (int part = 0; part < 8; ++part)
            scales[part] = static_cast<std::int8_t>(2 * (block.high_bits[part][1] >> 4 & 7) + 1);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ1_S>(block, floats);
    }
};
static_assert(sizeof(IQ1_S::Block) == 50);

}  // namespace artel::quant
