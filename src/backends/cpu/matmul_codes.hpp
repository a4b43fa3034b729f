// SPDX-License-Identifier: Apache-2.0
// MatMul kernels of the formats packed as codes (packed_codes.hpp), one table for each instruction
// set, in the order of CodeKernel.
#pragma once

#include "backends/cpu/kernels.hpp"

namespace artel::cpu {

namespace scalar {
extern const RoundedMatMul kMatMulCodes[];
}
#if defined(__x86_64__)
namespace avx2 {
extern const RoundedMatMul kMatMulCodes[];
}
#endif

}  // namespace artel::cpu
