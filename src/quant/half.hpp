// SPDX-License-Identifier: Apache-2.0
// 16-bit floats in software: f16 (IEEE binary16) and bf16 (the upper half of a float), converted
// exactly as the CPU's own instructions do: to nearest even, subnormals kept, a NaN made quiet and
// its upper payload bits kept. Scalar and vector code may be mixed freely. Pure functions.
// (__builtin_bit_cast, since std::bit_cast would leave a symbol of its own in unoptimised builds.)
// tidy: helper
#pragma once

#include <cstdint>

/// Code that kernels compiled for several instruction sets share must leave no symbol of its own:
/// the linker would keep one copy, perhaps one that this CPU can't run.
#define ARTEL_KERNEL_INLINE [[gnu::always_inline]] inline

namespace artel::quant {

using F16Bits = std::uint16_t;
using Bf16Bits = std::uint16_t;

//  f16:  sign 1 | exponent 5, bias 15   | fraction 10
//  bf16: sign 1 | exponent 8, bias 127  | fraction 7
//  f32:  sign 1 | exponent 8, bias 127  | fraction 23

ARTEL_KERNEL_INLINE float f16_to_f32(F16Bits half) {
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t magnitude = half & 0x7FFFU;
    if (magnitude < 0x0400U) {  // zero or subnormal: fraction * 2^-24, exact
        const float value = static_cast<float>(magnitude) * 0x1p-24F;
        return __builtin_bit_cast(float, sign | __builtin_bit_cast(std::uint32_t, value));
    }
    if (magnitude >= 0x7C00U) {
        const std::uint32_t quiet = magnitude > 0x7C00U ? 0x0040'0000U : 0U;
        return __builtin_bit_cast(float, sign | 0x7F80'0000U | quiet | (magnitude & 0x03FFU) << 13);
    }
    return __builtin_bit_cast(float, sign | ((magnitude << 13) + ((127U - 15U) << 23)));
}

ARTEL_KERNEL_INLINE F16Bits f32_to_f16(float value) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = bits >> 16 & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
    std::uint32_t half = 0;
    if (magnitude > 0x7F80'0000U) {  // NaN
        half = 0x7E00U | (magnitude >> 13 & 0x03FFU);
    } else if (magnitude >= 0x477F'F000U) {  // 65520 and above round to infinity
        half = 0x7C00U;
    } else if (magnitude >= 0x3880'0000U) {  // 2^-14: a normal f16; a carry raises the exponent
        const std::uint32_t rebiased = magnitude - ((127U - 15U) << 23);
        half = (rebiased + 0x0FFFU + (rebiased >> 13 & 1U)) >> 13;
    } else {
        // Adding 0.5 puts the unit of f16's subnormals, 2^-24, at the last bit of the fraction, so
        // that the addition itself rounds to nearest even.
        const float shifted = __builtin_bit_cast(float, magnitude) + 0.5F;
        half = __builtin_bit_cast(std::uint32_t, shifted) - __builtin_bit_cast(std::uint32_t, 0.5F);
    }
    return static_cast<F16Bits>(sign | half);
}

ARTEL_KERNEL_INLINE float bf16_to_f32(Bf16Bits half) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(half) << 16);
}

ARTEL_KERNEL_INLINE Bf16Bits f32_to_bf16(float value) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    if ((bits & 0x7FFF'FFFFU) > 0x7F80'0000U)  // NaN: rounding could turn it into infinity
        return static_cast<Bf16Bits>(bits >> 16 | 0x0040U);
    return static_cast<Bf16Bits>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace artel::quant
