// SPDX-License-Identifier: Apache-2.0
// IQ4_XS: 256 elements in 8 parts of 32, each with a 6-bit scale.
// value = (scale * (part scale - 32)) * kIq4Values[code], code in 0..15.
//
//   byte 0      2                    4                   8                                    136
//        | f16  | u16: upper two     | 4 x low four bits | 8 x 16 bytes, a part each:
//        | scale| bits, part p at 2p | of parts 2i, 2i+1 | (element i | element i+16 << 4)
#pragma once

#include "quant/iq4_nl.hpp"

namespace artel::quant {

struct IQ4_XS {
    static constexpr const char* kName = "IQ4_XS";
    static constexpr std::uint32_t kGgufId = 23;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 32;
    struct Block {
        F16Bits scale;
        std::uint8_t high_scales[2];
        std::uint8_t low_scales[4];
        std::uint8_t codes[128];
    };

    /// The 256 whole numbers, -127..113.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int part = 0; part < 8; ++part)
            unpack_nibbles(block.codes + 16 * part, 16, quants + 32 * part);
        for (int i = 0; i < kBlockElements; ++i) quants[i] = kIq4Values[quants[i]];
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    /// 8 numbers, -32..31.
    ARTEL_KERNEL_INLINE static void unpack_part_scales(const Block& block, std::int8_t* scales) {
        const auto high_scales = static_cast<int>(two_bytes(block.high_scales));
        for (int part = 0; part < 8; ++part) {
            const int low = block.low_scales[part / 2] >> (part % 2 * 4) & 0x0F;
            const int high = high_scales >> (2 * part) & 3;
            scales[part] = static_cast<std::int8_t>((low | high << 4) - 32);
        }
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<IQ4_XS>(block, floats);
    }
};
static_assert(sizeof(IQ4_XS::Block) == 136);

}  // namespace artel::quant
