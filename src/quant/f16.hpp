// SPDX-License-Identifier: Apache-2.0
// F16: IEEE binary16. Block: one value, 2 bytes.
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

struct F16 {
    static constexpr const char* kName = "F16";
    static constexpr std::uint32_t kGgufId = 1;
    static constexpr int kBlockElements = 1;
    struct Block {
        F16Bits value;
    };

    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        floats[0] = f16_to_f32(block.value);
    }
};
static_assert(sizeof(F16::Block) == 2);

}  // namespace artel::quant
