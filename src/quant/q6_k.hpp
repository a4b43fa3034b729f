// SPDX-License-Identifier: Apache-2.0
// Q6_K: 256 elements in 16 parts of 16, each with an 8-bit scale.
// value = (scale * scales[part]) * (quant - 32), quant in 0..63.
//
//   byte 0                     128                 192          208    210
//        | 2 x 64 bytes: low   | 2 x 32 bytes:     | 16 x int8  | f16  |
//        | four bits           | upper two bits    | scales     | scale|
//
// Each half h of the block holds 128 elements as 4 runs of 32. Element i of run r: low bits in byte
// i + 32 * (r % 2) of the half's 64 bytes, in its low (r < 2) or high (r >= 2) four bits; upper
// bits in byte i of the half's 32 bytes, at bit 2r.
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

struct Q6_K {
    static constexpr const char* kName = "Q6_K";
    static constexpr std::uint32_t kGgufId = 14;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = 16;
    struct Block {
        std::uint8_t low_bits[128];
        std::uint8_t high_bits[64];
        std::int8_t scales[16];
        F16Bits scale;
    };

    /// The 256 whole numbers, -32..31. The scales of the parts are block.scales.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int run = 0; run < 8; ++run) {
            const int half = run / 4;
            const int r = run % 4;
            for (int i = 0; i < 32; ++i) {
                const int low = block.low_bits[64 * half + 32 * (r % 2) + i] >> (r / 2 * 4) & 0x0F;
                const int high = block.high_bits[32 * half + i] >> (2 * r) & 0x03;
                quants[32 * run + i] = static_cast<std::int8_t>((low | high << 4) - 32);
            }
        }
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        const float scale = f16_to_f32(block.scale);
        std::int8_t quants[kBlockElements];
        unpack(block, quants);
        for (int i = 0; i < kBlockElements; ++i) {
            const int part = i / kPartElements;
            floats[i] =
                scale * static_cast<float>(block.scales[part]) * static_cast<float>(quants[i]);
        }
    }
};
static_assert(sizeof(Q6_K::Block) == 210);

}  // namespace artel::quant
