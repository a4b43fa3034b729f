// SPDX-License-Identifier: Apache-2.0
// Q3_K: 256 elements in 16 parts of 16, each with a 6-bit scale.
// value = (scale * (part scale - 32)) * (quant - 4), quant in 0..7.
//
//   byte 0                32              96                  108    110
//        | 32 bytes:      | 2 x 32 bytes: | 12 bytes:         | f16  |
//        | third bits     | low two bits  | 16 x part scale   | scale|
//
// Low bits: two_bits.hpp. The third bit of element 32 * run + i is bit `run` of byte i.
// Part scale p: low four bits in byte p % 8, in its low half for p < 8; upper two bits in byte
// 8 + p % 4, at bit 2 * (p / 4).
#pragma once

#include "quant/parts.hpp"
#include "quant/two_bits.hpp"

namespace artel::quant {

struct Q3_K {
    static constexpr const char* kName = "Q3_K";
    static constexpr std::uint32_t kGgufId = 11;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 16;
    struct Block {
        std::uint8_t high_bits[32];
        std::uint8_t quants[64];
        std::uint8_t packed_scales[12];
        F16Bits scale;
    };

    /// The 256 whole numbers, -4..3.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_two_bits(block.quants, quants);
        for (int run = 0; run < 8; ++run)
            for (int i = 0; i < 32; ++i) {
                const int high = block.high_bits[i] >> run & 1;
                quants[32 * run + i] =
                    static_cast<std::int8_t>(quants[32 * run + i] + 4 * high - 4);
            }
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    /// 16 numbers, -32..31.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        for (int p = 0; p < 16; ++p) {
            const int low = block.packed_scales[p % 8] >> (p / 8 * 4) & 0x0F;
            const int high = block.packed_scales[8 + p % 4] >> (p / 4 * 2) & 3;
            scales[p] = static_cast<std::int8_t>((low | high << 4) - 32);
        }
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<Q3_K>(block, floats);
    }
};
static_assert(sizeof(Q3_K::Block) == 110);

}  // namespace artel::quant
