// SPDX-License-Identifier: Apache-2.0
// SharedBytes: a reference-counted, immutable run of bytes (the only shared ownership in artel).
// ByteReader / ByteWriter: little-endian values with bounds checks; a reader never reads past its
// view and never allocates more than the bytes left can justify.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

static_assert(std::endian::native == std::endian::little,
              "artel reads little-endian files in place");

namespace artel {

class SharedBytes {
  public:
    SharedBytes() = default;
    explicit SharedBytes(std::vector<std::byte> bytes)
        : owner_(std::make_shared<const std::vector<std::byte>>(std::move(bytes))),
          view_(*owner_) {}
    static SharedBytes copy_of(std::span<const std::byte> bytes) {
        return SharedBytes(std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    std::span<const std::byte> span() const { return view_; }
    std::size_t size() const { return view_.size(); }
    bool empty() const { return view_.empty(); }
    const std::byte* data() const { return view_.data(); }
    /// A part of the same bytes, which stay alive. Requires first + count <= size().
    SharedBytes slice(std::size_t first, std::size_t count) const {
        SharedBytes part = *this;
        part.view_ = view_.subspan(first, count);
        return part;
    }

  private:
    std::shared_ptr<const std::vector<std::byte>> owner_;
    std::span<const std::byte> view_;
};

class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::size_t remaining() const { return bytes_.size() - position_; }
    std::size_t position() const { return position_; }

    template <class T>
    requires std::is_trivially_copyable_v<T> Result<T> read() {
        if (remaining() < sizeof(T))
            return data_loss("{} bytes wanted at byte {}, {} left", sizeof(T), position_,
                             remaining());
        T value;
        std::memcpy(&value, bytes_.data() + position_, sizeof(T));
        position_ += sizeof(T);
        return value;
    }
    Result<std::span<const std::byte>> read_bytes(std::uint64_t count) {
        if (count > remaining())
            return data_loss("{} bytes wanted at byte {}, {} left", count, position_, remaining());
        auto part = bytes_.subspan(position_, static_cast<std::size_t>(count));
        position_ += static_cast<std::size_t>(count);
        return part;
    }

  private:
    std::span<const std::byte> bytes_;
    std::size_t position_ = 0;
};

class ByteWriter {
  public:
    template <class T>
    requires std::is_trivially_copyable_v<T>
    void write(const T& value) { write_bytes(std::as_bytes(std::span(&value, 1))); }
    void write_bytes(std::span<const std::byte> bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    std::size_t size() const { return bytes_.size(); }
    std::vector<std::byte> take() { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

inline std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace artel
