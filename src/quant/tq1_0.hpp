// SPDX-License-Identifier: Apache-2.0
// TQ1_0: 256 trits, five to a byte, one scale. value = scale * trit, trit in -1..1.
//
//   byte 0                    32                  48                  52     54
//        | 32 bytes: elements | 16 bytes:         | 4 bytes:          | f16  |
//        | 0 to 159           | 160 to 239        | 240 to 255        | scale|
//
// In a run of n bytes, digit k of byte i is element k * n + i of the run; the last run has four
// digits a byte, the others five. A byte is the fraction 0.d0 d1 d2 ... in base 3, times 256 and
// rounded up: multiplied by 3, a digit carries out of the byte.
#pragma once

#include "quant/parts.hpp"

namespace artel::quant {

struct TQ1_0 {
    static constexpr const char* kName = "TQ1_0";
    static constexpr std::uint32_t kGgufId = 34;
    static constexpr int kBlockElements = 256;
    static constexpr int kPartElements = kBlockElements;
    struct Block {
        std::uint8_t fives[48];
        std::uint8_t fours[4];
        F16Bits scale;
    };

    /// The 256 whole numbers, -1..1.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        unpack_run(block.fives, 32, 5, quants);
        unpack_run(block.fives + 32, 16, 5, quants + 160);
        unpack_run(block.fours, 4, 4, quants + 240);
    }
    ARTEL_KERNEL_INLINE static float block_scale(const Block& block) {
        return f16_to_f32(block.scale);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        decode_parts<TQ1_0>(block, floats);
    }

  private:
    ARTEL_KERNEL_INLINE static void unpack_run(const std::uint8_t* bytes, int count, int digits,
                                               std::int8_t* quants) {
        for (int i = 0; i < count; ++i) {
            int fraction = bytes[i];
            for (int digit = 0; digit < digits; ++digit) {
                fraction *= 3;
                quants[digit * count + i] = static_cast<std::int8_t>((fraction >> 8) - 1);
                fraction &= 0xFF;
            }
        }
    }
};
static_assert(sizeof(TQ1_0::Block) == 54);

}  // namespace artel::quant
