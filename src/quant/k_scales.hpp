// SPDX-License-Identifier: Apache-2.0
// The eight 6-bit scales and eight 6-bit minima that Q4_K and Q5_K pack into 12 bytes.
//
//   byte i   (0..3):  scale[i]   in bits 0-5, upper two bits of scale[i+4]   in bits 6-7
//   byte 4+i (0..3):  minimum[i] in bits 0-5, upper two bits of minimum[i+4] in bits 6-7
//   byte 8+i (0..3):  low four bits of scale[i+4] in bits 0-3, of minimum[i+4] in bits 4-7
// tidy: helper
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

/// scales and minima: 8 values each, 0..63.
ARTEL_KERNEL_INLINE void unpack_k_scales(const std::uint8_t* packed, std::uint8_t* scales,
                                         std::uint8_t* minima) {
    for (int i = 0; i < 4; ++i) {
        scales[i] = packed[i] & 0x3F;
        minima[i] = packed[i + 4] & 0x3F;
        scales[i + 4] = static_cast<std::uint8_t>((packed[i + 8] & 0x0F) | (packed[i] >> 6) << 4);
        minima[i + 4] = static_cast<std::uint8_t>((packed[i + 8] >> 4) | (packed[i + 4] >> 6) << 4);
    }
}

}  // namespace artel::quant
