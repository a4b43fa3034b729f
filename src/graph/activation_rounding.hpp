// SPDX-License-Identifier: Apache-2.0
// THE rule by which a row of activations is rounded for weights in integer formats: blocks of 32
// consecutive columns, each with one float scale and 32 whole numbers in -127..127; value = scale *
// quant. Every backend rounds by this rule, bit for bit, so a row's rounding depends on nothing but
// the row. Vector code mirrors it operation by operation:
//   amax    = the largest |x| of the block
//   scale   = amax / 127
//   inverse = amax < 2^-120 ? 0 : 127 / amax     (and scale = 0 then: such a block rounds to zero)
//   quant   = x * inverse to the nearest whole number, ties to even (cvtps_epi32)
// Since |x| <= amax, |x * inverse| is at most 127 * (1 + 2^-23): the result needs no clamp.
// A block with an infinity or a NaN gets a NaN scale and zeros: the row's results are then NaN,
// which the stage reports. No inline symbol is left behind (see ARTEL_KERNEL_INLINE).
#pragma once

#include <cstdint>

#include "quant/half.hpp"

namespace artel::graph {

constexpr int kActivationBlock = 32;

/// Below this the block is zero: 127 / amax would overflow soon after.
constexpr float kActivationSmallest = 0x1p-120F;

/// `x` to the nearest whole number, ties to even; |x| <= 2^22. Adding 1.5 * 2^23 puts the unit at
/// the last bit of the fraction, so that the addition itself rounds.
ARTEL_KERNEL_INLINE std::int32_t round_to_even(float x) {
    constexpr float kMagic = 0x1.8p23F;
    const float shifted = x + kMagic;
    return __builtin_bit_cast(std::int32_t, shifted) - __builtin_bit_cast(std::int32_t, kMagic);
}

/// One block: 32 floats to 32 quants and the scale, which is returned.
ARTEL_KERNEL_INLINE float round_activation_block(const float* x, std::int8_t* quants) {
    float amax = 0;
    bool is_finite = true;
    for (int i = 0; i < kActivationBlock; ++i) {
        const float magnitude = __builtin_fabsf(x[i]);
        is_finite &= magnitude <= __FLT_MAX__;  // false for NaN too
        amax = magnitude > amax ? magnitude : amax;
    }
    const bool is_zero = !is_finite || amax < kActivationSmallest;
    const float inverse = is_zero ? 0.0F : 127.0F / amax;
    for (int i = 0; i < kActivationBlock; ++i)
        quants[i] =
            is_zero ? std::int8_t{0} : static_cast<std::int8_t>(round_to_even(x[i] * inverse));
    if (!is_finite) return __builtin_nanf("");
    return is_zero ? 0.0F : amax / 127.0F;
}

/// A row of `columns` (a multiple of 32): quants (columns), scales (columns / 32).
ARTEL_KERNEL_INLINE void round_activations(const float* x, std::uint64_t columns,
                                           std::int8_t* quants, float* scales) {
    for (std::uint64_t block = 0; block < columns / kActivationBlock; ++block)
        scales[block] =
            round_activation_block(x + block * kActivationBlock, quants + block * kActivationBlock);
}

}  // namespace artel::graph
