// SPDX-License-Identifier: Apache-2.0
// ByteSource: bytes at offsets, from a file or from memory, so that the parser reads both.
// FileSource reads with pread only (a file that shrinks is an Error, never a signal), and opens
// nothing but regular files. Const functions may be called from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace artel::gguf {

class ByteSource {
  public:
    virtual ~ByteSource() = default;
    virtual std::uint64_t bytes() const = 0;
    /// Fills `target` from `offset`. Errors: DataLoss (past the end), Unavailable (read error).
    virtual Error read(std::uint64_t offset, std::span<std::byte> target) const = 0;
};

class MemorySource final : public ByteSource {
  public:
    /// Borrows the bytes.
    explicit MemorySource(std::span<const std::byte> memory) : memory_(memory) {}
    std::uint64_t bytes() const override { return memory_.size(); }
    Error read(std::uint64_t offset, std::span<std::byte> target) const override;

  private:
    std::span<const std::byte> memory_;
};

class FileSource final : public ByteSource {
  public:
    /// Errors: NotFound, PermissionDenied, InvalidArgument (not a regular file), Unavailable.
    static Result<FileSource> open(const std::filesystem::path& path);

    /// When the file was opened.
    std::uint64_t bytes() const override { return bytes_; }
    Error read(std::uint64_t offset, std::span<std::byte> target) const override;

  private:
    FileSource(Descriptor descriptor, std::uint64_t bytes)
        : descriptor_(std::move(descriptor)), bytes_(bytes) {}
    Descriptor descriptor_;
    std::uint64_t bytes_ = 0;
};

}  // namespace artel::gguf
