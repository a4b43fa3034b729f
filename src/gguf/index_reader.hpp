// SPDX-License-Identifier: Apache-2.0
// IndexReader: the first bytes of a ByteSource as a stream of little-endian values, read in pieces
// of 64 KiB. It ends at the file's end or at kIndexBytesMax, whichever comes first; nothing is
// allocated before that many bytes are known to be left. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gguf/byte_source.hpp"

namespace artel::gguf {

class IndexReader {
  public:
    /// Borrows the source.
    explicit IndexReader(const ByteSource& source);

    std::uint64_t position() const { return buffer_offset_ + buffer_position_; }
    std::uint64_t remaining() const { return end_ - position(); }
    /// DataLoss (the file is too short) or InvalidArgument (the index would be too large) unless
    /// `count` bytes are left.
    Error check_remaining(std::uint64_t count) const;

    template <class T>
    Result<T> read() {
        T value;
        ARTEL_TRY(read_into(std::as_writable_bytes(std::span(&value, 1))));
        return value;
    }
    /// Appends `count` bytes to `text`.
    Error append(std::uint64_t count, std::string& text);
    /// A length in 64 bits and that many bytes, at most `bytes_max`.
    Result<std::string> read_string(std::uint64_t bytes_max);

  private:
    Error read_into(std::span<std::byte> target);
    Error refill();

    const ByteSource& source_;
    std::uint64_t end_;
    std::vector<std::byte> buffer_;
    std::size_t buffer_position_ = 0;
    std::uint64_t buffer_offset_ = 0;  // of buffer_[0] in the source
};

}  // namespace artel::gguf
