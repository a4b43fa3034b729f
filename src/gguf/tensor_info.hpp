// SPDX-License-Identifier: Apache-2.0
// TensorInfo: what the table of a GGUF file says about one tensor, checked. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace artel::gguf {

struct TensorInfo {
    std::string name;
    /// As in the file: dims[0] is the length of a row, the fastest; unused ones are 1.
    std::array<std::uint64_t, 4> dims{1, 1, 1, 1};
    std::uint32_t rank = 0;     // 1..4
    std::uint32_t type_id = 0;  // GGUF's number of the format
    std::uint32_t shard = 0;    // place in GgufIndex::shards()
    std::uint64_t offset = 0;   // of the first byte, from the start of the shard's file
    std::uint64_t bytes = 0;

    std::uint64_t columns() const { return dims[0]; }
    std::uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }  // can't overflow: checked
    std::uint64_t elements() const { return columns() * rows(); }
    std::uint64_t row_bytes() const { return bytes / rows(); }
};

}  // namespace artel::gguf
