// SPDX-License-Identifier: Apache-2.0
// GgufIndex: what a model file says it holds: metadata, and name, shape, format and place of each
// tensor, over all files (shards) of a split model. The index is checked in itself, but the tensor
// data need not be there: `inspect` and `plan` work on the first bytes of a file alone. Whoever
// loads weights calls check_data_present() first and reads with TensorReader.
// Immutable; const functions may be called from any thread.
//
// 1. Tensor names are unique over all shards; tensors are in the order of the files.
// 2. Each tensor is whole blocks, aligned in its file, and overlaps no other.
// 3. Sums of tensor bytes and all offsets fit in 63 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/block_size.hpp"
#include "base/result.hpp"
#include "gguf/metadata.hpp"
#include "gguf/tensor_info.hpp"

namespace artel::gguf {

struct Shard {
    std::filesystem::path path;     // empty where the index was parsed from memory
    std::uint64_t file_bytes = 0;   // when the index was read
    std::uint64_t index_bytes = 0;  // header, metadata and tensor table, from the file's start
    std::uint64_t data_offset = 0;  // where tensor data starts: index_bytes, aligned
    std::uint32_t version = 0;
    std::uint32_t alignment = 0;
    std::uint32_t tensor_count = 0;
};

class GgufIndex {
  public:
    /// `path`: a file, any shard of a split model, or a directory that holds exactly one model.
    /// Errors name the file and the field: NotFound, InvalidArgument, DataLoss (index cut short),
    /// Unimplemented (version 1, big-endian).
    static Result<GgufIndex> open(const std::filesystem::path& path, BlockSizeLookup block_size);
    /// The same from memory, e.g. the first index_bytes of each shard, in order.
    static Result<GgufIndex> parse(std::span<const std::span<const std::byte>> shards,
                                   BlockSizeLookup block_size);

    const Metadata& metadata() const { return metadata_; }
    std::span<const TensorInfo> tensors() const { return tensors_; }
    std::span<const Shard> shards() const { return shards_; }
    /// nullptr where there is none of that name.
    const TensorInfo* find_tensor(std::string_view name) const;
    /// Of all tensors.
    std::uint64_t tensor_bytes() const { return tensor_bytes_; }

  private:
    GgufIndex() = default;
    friend class GgufIndexBuilder;

    Metadata metadata_;
    std::vector<TensorInfo> tensors_;
    std::vector<Shard> shards_;
    std::map<std::string, std::size_t, std::less<>> positions_;  // name -> place in tensors_
    std::uint64_t tensor_bytes_ = 0;
};

/// DataLoss where a file ends before its tensors do, naming the first such tensor and the bytes.
Error check_data_present(const GgufIndex& index);

}  // namespace artel::gguf
