// SPDX-License-Identifier: Apache-2.0
// BF16: the upper half of a float. Block: one value, 2 bytes.
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

struct BF16 {
    static constexpr const char* kName = "BF16";
    static constexpr std::uint32_t kGgufId = 30;
    static constexpr int kBlockElements = 1;
    struct Block {
        Bf16Bits value;
    };

    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        floats[0] = bf16_to_f32(block.value);
    }
};
static_assert(sizeof(BF16::Block) == 2);

}  // namespace artel::quant
