// SPDX-License-Identifier: Apache-2.0
// What a format is: how weights are packed in a file. One header a format, one type each, with a
// name, its GGUF type id, the bytes of a block (struct Block, as in the file, little-endian) and
// decode(), which gives the exact float of each element of a block; everything else is derived.
// Integer formats also give the whole numbers behind the floats (unpack, and scales where a block
// has parts), for dot products in integers. A row is whole blocks; a tensor is rows one after
// another, without gaps. Blocks in a file are not aligned for anything but bytes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "quant/half.hpp"

namespace artel::quant {

template <class F>
concept Format = requires(const typename F::Block& block, float* floats) {
    { F::kName } -> std::convertible_to<const char*>;
    { F::kGgufId } -> std::convertible_to<std::uint32_t>;
    { F::kBlockElements } -> std::convertible_to<int>;
    F::decode(block, floats);
    requires std::is_trivially_copyable_v<typename F::Block>;
};

/// A copy of block `index` of a row that may lie at any address.
template <class F>
ARTEL_KERNEL_INLINE typename F::Block load_block(const std::byte* row, std::size_t index) {
    typename F::Block block;
    std::memcpy(&block, row + index * sizeof(block), sizeof(block));
    return block;
}

/// The low and high four bits of `count` bytes: low halves first, then the high ones.
ARTEL_KERNEL_INLINE void unpack_nibbles(const std::uint8_t* packed, int count,
                                        std::int8_t* quants) {
    for (int i = 0; i < count; ++i) {
        quants[i] = static_cast<std::int8_t>(packed[i] & 0x0F);
        quants[i + count] = static_cast<std::int8_t>(packed[i] >> 4);
    }
}

}  // namespace artel::quant
