// SPDX-License-Identifier: Apache-2.0
// TensorCache: streamed tensors on disk, one file each: CACHE_DIR/DIGEST/NUMBER. A file is a
// 24-byte trailer (u64 length, 128-bit XXH3 of the bytes) after the tensor's bytes; it is written
// aside and renamed, so a file under its name is whole unless the disk damaged it, which check()
// notices.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "protocol/ids.hpp"

namespace artel::runtime {

class TensorCache {
  public:
    TensorCache(std::filesystem::path directory, const protocol::Hash128& model);

    /// Whether there is a file at all; check() says whether it is of use.
    bool has(std::uint32_t tensor) const;
    /// Whether a whole, undamaged copy of `bytes` bytes with this hash is there. Reads it once.
    bool check(std::uint32_t tensor, std::uint64_t bytes, const protocol::Hash128& expected) const;
    Error read(std::uint32_t tensor, std::uint64_t offset, std::span<std::byte> target) const;

    /// Collects one tensor in ascending order; commit() makes it visible. Dropping it leaves
    /// nothing.
    class Writer {
      public:
        virtual ~Writer() = default;
        virtual Error append(std::span<const std::byte> bytes) = 0;
        virtual Error commit() = 0;
    };
    Result<std::unique_ptr<Writer>> write(std::uint32_t tensor) const;

  private:
    std::filesystem::path path(std::uint32_t tensor) const;
    std::filesystem::path directory_;
};

}  // namespace artel::runtime
