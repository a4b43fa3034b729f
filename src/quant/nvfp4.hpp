// SPDX-License-Identifier: Apache-2.0
// NVFP4 (E2M1 elements with UE4M3 scales): 64 elements in 4 parts of 16, each with a float scale.
// value = (part scale / 2) * kFp4Values[code]; the values are twice those of E2M1.
//
//   byte 0            4                                                        36
//        | 4 x UE4M3  | 4 x 8 bytes, a part each: (element i | element i+8 << 4) |
//
// The scale of the whole tensor, if there is one, is a tensor of its own (MatMul's scale).
#pragma once

#include "quant/mxfp4.hpp"

namespace artel::quant {

/// Half of a UE4M3 number: exponent of 4 bits with bias 7, fraction of 3 bits, no sign (bit 7 is
/// ignored). 0x7F, NaN in UE4M3, counts as 0 in GGUF.
///   An f16 with the same exponent and fraction is 2^8 times smaller, since its bias is 15.
ARTEL_KERNEL_INLINE float half_ue4m3_to_f32(std::uint8_t code) {
    if (code == 0x7F) return 0;
    return f16_to_f32(static_cast<F16Bits>((code & 0x7F) << 7)) * 128.0F;
}

struct NVFP4 {
    static constexpr const char* kName = "NVFP4";
    static constexpr std::uint32_t kGgufId = 40;
    static constexpr int kBlockElements = 64;
    struct Block {
        std::uint8_t part_scales[4];
        std::uint8_t codes[4][8];
    };

    /// The 64 whole numbers, -12..12.
    ARTEL_KERNEL_INLINE static void unpack(const Block& block, std::int8_t* quants) {
        for (int part = 0; part < 4; ++part)
            unpack_nibbles(block.codes[part], 8, quants + 16 * part);
        for (int i = 0; i < kBlockElements; ++i) quants[i] = kFp4Values[quants[i]];
    }
    /// The scale of part `part`, a float of its own.
    ARTEL_KERNEL_INLINE static float part_scale(const Block& block, int part) {
        return half_ue4m3_to_f32(block.part_scales[part]);
    }
    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        std::int8_t quants[kBlockElements];
        unpack(block, quants);
        for (int i = 0; i < kBlockElements; ++i)
            floats[i] = part_scale(block, i / 16) * static_cast<float>(quants[i]);
    }
};
static_assert(sizeof(NVFP4::Block) == 36);

}  // namespace artel::quant
