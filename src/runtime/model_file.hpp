// SPDX-License-Identifier: Apache-2.0
// ModelFile: a model on disk as the cluster speaks of it: its index as one run of bytes, the digest
// of those bytes (the model's name between nodes), and ranges of tensors by number. Immutable after
// open(); read() may be called from any thread. The index as bytes ("index blob"), so that a worker
// without the file can rebuild the index:
//   u32 shard count | for each shard: u64 bytes of its index | the indices one after another
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "gguf/gguf_index.hpp"
#include "gguf/tensor_reader.hpp"
#include "protocol/messages.hpp"

namespace artel::runtime {

class ModelFile {
  public:
    /// Errors: those of GgufIndex::open and TensorReader::open (a short file names tensor and
    /// bytes).
    static Result<std::shared_ptr<const ModelFile>> open(const std::filesystem::path& path);
    /// The digest alone, from the index alone. For finding a local copy.
    static Result<protocol::Hash128> digest_of(const std::filesystem::path& path);

    const gguf::GgufIndex& index() const { return index_; }
    const std::vector<std::byte>& index_blob() const { return blob_; }
    const protocol::Hash128& digest() const { return digest_; }
    std::uint64_t file_bytes() const;

    /// The bytes of a range of the index blob or of a tensor. Errors: InvalidArgument (no such
    /// range).
    Result<std::vector<std::byte>> read(const protocol::WeightsRange& range,
                                        std::uint64_t& part_bytes) const;

  private:
    explicit ModelFile(gguf::GgufIndex index) : index_(std::move(index)) {}
    gguf::GgufIndex index_;
    std::vector<std::byte> blob_;
    protocol::Hash128 digest_;
    std::vector<gguf::TensorReader> reader_;  // one, once open() has made it
};

/// The index back from its blob. Bytes from outside: every length is checked.
Result<gguf::GgufIndex> parse_index_blob(std::span<const std::byte> blob);

}  // namespace artel::runtime
