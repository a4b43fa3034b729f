// SPDX-License-Identifier: Apache-2.0
// F32: floats as they are. Block: one float, 4 bytes.
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

struct F32 {
    static constexpr const char* kName = "F32";
    static constexpr std::uint32_t kGgufId = 0;
    static constexpr int kBlockElements = 1;
    struct Block {
        float value;
    };

    ARTEL_KERNEL_INLINE static void decode(const Block& block, float* floats) {
        floats[0] = block.value;
    }
};
static_assert(sizeof(F32::Block) == 4);

}  // namespace artel::quant
