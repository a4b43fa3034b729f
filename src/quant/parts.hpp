// SPDX-License-Identifier: Apache-2.0
// What formats share whose value is block_scale * part_scale * whole number. Such a format gives:
//
//   kPartElements         elements that share a part's scale; kBlockElements where there are no
//                         parts
//   unpack()              the whole numbers of a block
//   block_scale()         one float a block, constant factors of the format included
//   unpack_part_scales()  one whole number a part; missing where there are no parts
//
// and, where values have a minimum, unpack_part_minima() and block_minimum(): value is less
// block_minimum * part_minimum.
// tidy: helper
#pragma once

#include "quant/format.hpp"

namespace artel::quant {

/// Whether F describes itself in this way.
template <class F>
concept PartsFormat = requires(const typename F::Block& block) {
    { F::kPartElements } -> std::convertible_to<int>;
    { F::block_scale(block) } -> std::same_as<float>;
};
/// Whether blocks of F have parts with scales of their own.
template <class F>
inline constexpr bool kHasPartScales = F::kPartElements < F::kBlockElements;
template <class F>
inline constexpr bool kHasPartMinima = requires(const typename F::Block& block) {
    F::block_minimum(block);
};

/// Each product is one rounded operation in this order; most are exact.
template <class F>
ARTEL_KERNEL_INLINE void decode_parts(const typename F::Block& block, float* floats) {
    constexpr int kParts = F::kBlockElements / F::kPartElements;
    std::int8_t quants[F::kBlockElements];
    F::unpack(block, quants);
    float scales[kParts];
    for (float& scale : scales) scale = F::block_scale(block);
    if constexpr (kHasPartScales<F>) {
        std::int8_t part_scales[kParts];
        F::unpack_part_scales(block, part_scales);
        for (int part = 0; part < kParts; ++part)
            scales[part] *= static_cast<float>(part_scales[part]);
    }
    for (int i = 0; i < F::kBlockElements; ++i)
        floats[i] = scales[i / F::kPartElements] * static_cast<float>(quants[i]);
    if constexpr (kHasPartMinima<F>) {
        std::int8_t minima[kParts];
        F::unpack_part_minima(block, minima);
        for (int i = 0; i < F::kBlockElements; ++i)
            floats[i] -= F::block_minimum(block) * static_cast<float>(minima[i / F::kPartElements]);
    }
}

/// A 16-bit number from two bytes, low byte first.
ARTEL_KERNEL_INLINE std::uint32_t two_bytes(const std::uint8_t* bytes) {
    return static_cast<std::uint32_t>(bytes[0] | bytes[1] << 8);
}
/// A 32-bit number from four bytes, low byte first.
ARTEL_KERNEL_INLINE std::uint32_t four_bytes(const std::uint8_t* bytes) {
    return two_bytes(bytes) | two_bytes(bytes + 2) << 16;
}

/// Seven signs and, so that the number of minus signs is even, the eighth.
ARTEL_KERNEL_INLINE std::uint32_t eight_signs(std::uint32_t seven) {
    std::uint32_t parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}
/// `magnitude`, negative where bit `bit` of `signs` is set.
ARTEL_KERNEL_INLINE std::int8_t with_sign(int magnitude, std::uint32_t signs, int bit) {
    return static_cast<std::int8_t>((signs >> bit & 1) != 0 ? -magnitude : magnitude);
}

}  // namespace artel::quant
