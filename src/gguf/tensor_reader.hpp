// SPDX-License-Identifier: Apache-2.0
// TensorReader: reads tensor data of a model into buffers that the caller owns. It keeps one open
// file a shard and no copy of anything; it never maps a file, so that one that changes or shrinks
// is an Error. read() may be called from several threads. The index must outlive the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "gguf/byte_source.hpp"
#include "gguf/gguf_index.hpp"

namespace artel::gguf {

class TensorReader {
  public:
    /// Errors: as FileSource::open; FailedPrecondition where a file has changed its size since the
    /// index was read; DataLoss as check_data_present.
    static Result<TensorReader> open(const GgufIndex& index);

    /// Fills `target` with the tensor's bytes from `first`. Errors: InvalidArgument (not within
    /// the tensor), DataLoss, Unavailable; all name the tensor.
    Error read(const TensorInfo& tensor, std::uint64_t first, std::span<std::byte> target) const;
    /// All of the tensor's bytes.
    Result<std::vector<std::byte>> read_all(const TensorInfo& tensor) const;

  private:
    TensorReader() = default;
    std::vector<FileSource> files_;
};

}  // namespace artel::gguf
