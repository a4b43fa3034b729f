// SPDX-License-Identifier: Apache-2.0
// Re-lays weights from a file's rows into groups of eight interleaved rows (packed_format.hpp) and
// reads single rows back as floats, for embeddings. Exact: no number is changed, so decoding a
// packed row gives the bits of quant::decode. Pure functions on memory of the caller; columns are
// whole blocks (the graph builder checks it).
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/formats.hpp"

namespace artel::cpu {

/// Bytes of `rows` packed rows, the last group padded.
std::size_t packed_bytes(quant::FormatId format, std::size_t rows, std::size_t columns);

/// Writes row `row`, as in the file at `source`, to its places in packed weights; other rows keep
/// theirs, so rows may come in any order.
void pack_row(quant::FormatId format, const std::byte* source, std::size_t row, std::size_t columns,
              std::byte* packed);

/// The floats of row `row` of packed weights.
void decode_packed_row(quant::FormatId format, const std::byte* packed, std::size_t row,
                       std::size_t columns, float* floats);

}  // namespace artel::cpu
