// SPDX-License-Identifier: Apache-2.0
// Q5_K: 256 elements in 8 parts of 32, each with a 6-bit scale and a 6-bit minimum.
// value = (scale * scales[part]) * quant - (minimum * minima[part]), quant in 0..31.
//
//   byte 0      2         4              16                    48                          176
//        | f16  | f16     | 12 bytes:    | 32 bytes; bit p of  | 4 x 32 bytes, low four bits
//        | scale| minimum | k_scales.hpp | byte i: fifth bit   | as in Q4_K
//                                        | of element i of part p
#pragma once

#include "quant/k_scales.hpp"

namespace artel::quant {

struct Q5_K {
    static constexpr const char* kName = "Q5_K";
    static constexpr std::uint32_t kGgufId = 13;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 32;
    struct Block {
        F16Bits scale;
        F16Bits minimum;
        std::uint8_t packed_scales[12];
        std::uint8_t high_bits[32];
        std::uint8_t quants[128];
    };

    /// The 256 whole numbers, 0..31.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (std::size_t group = 0; group < 4; ++group)
            unpack_nibbles(block.quants + 32 * group, 32, quants + 64 * group);
        for (int part = 0; part < 8; ++part)
            for (int i = 0; i < 32; ++i) {
                std::int8_t& quant = quants[32 * part + i];
                quant = static_cast<std::int8_t>(quant | (block.high_bits[i] >> part & 1) << 4);
            }
    }
    /// The scale and the minimum of each of the 8 parts, 0..63.
    ARTEL_KERNEL_INLINE static void unpack_scales(const Block& block, std::uint8_t* scales,
                                                  std::uint8_t* minima) {
        unpack_k_scales(block.packed_scales, scales, minima);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        std::int8_t quants[kBlockElements];
        std::uint8_t scales[8];
        std::uint8_t minima[8];
        unpack(block, quants);
        unpack_scales(block, scales, minima);
        for (int i = 0; i < kBlockElements; ++i) {
            const int part = i / kPartElements;
            const float scale = f16_to_f32(block.scale) * static_cast<float>(scales[part]);
            const float minimum = f16_to_f32(block.minimum) * static_cast<float>(minima[part]);
            floats[i] = scale * static_cast<float>(quants[i]) - minimum;
        }
    }
};
static_assert(sizeof(Q5_K::Block) == 176);

}  // namespace artel::quant
