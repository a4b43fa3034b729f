// SPDX-License-Identifier: Apache-2.0
// parse_shard: reads and checks the index of one GGUF file (versions 2 and 3, little-endian). What
// concerns several files together is in gguf_index.cpp.
#pragma once

#include <vector>

#include "base/block_size.hpp"
#include "base/result.hpp"
#include "gguf/byte_source.hpp"
#include "gguf/gguf_index.hpp"
#include "gguf/metadata.hpp"
#include "gguf/tensor_info.hpp"

namespace artel::gguf {

struct ParsedShard {
    Shard shard;  // path left empty
    Metadata metadata;
    std::vector<TensorInfo> tensors;  // in the file's order; shard numbers left at 0
};

Result<ParsedShard> parse_shard(const ByteSource& source, BlockSizeLookup block_size);

}  // namespace artel::gguf
