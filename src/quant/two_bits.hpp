// SPDX-License-Identifier: Apache-2.0
// The two-bit numbers of Q2_K, Q3_K and TQ2_0: 256 elements in 64 bytes. Each half of 128 elements
// has 32 bytes; element 32 * j + i of a half is in bits 2j and 2j + 1 of its byte i.
// tidy: helper
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

/// 256 numbers, 0..3.
ARTEL_KERNEL_INLINE void unpack_two_bits(const std::uint8_t* packed, std::int8_t* quants) {
    for (int run = 0; run < 8; ++run)
        for (int i = 0; i < 32; ++i)
            quants[32 * run + i] =
                static_cast<std::int8_t>(packed[run / 4 * 32 + i] >> (2 * (run % 4)) & 3);
}

}  // namespace artel::quant
