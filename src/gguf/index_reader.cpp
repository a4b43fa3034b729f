// SPDX-License-Identifier: Apache-2.0
#include "gguf/index_reader.hpp"

#include <algorithm>
#include <cstring>

#include "gguf/limits.hpp"

namespace artel::gguf {

namespace {
constexpr std::uint64_t kPieceBytes = 64 << 10;
}  // namespace

IndexReader::IndexReader(const ByteSource& source)
    : source_(source), end_(std::min(source.bytes(), kIndexBytesMax)) {}

Error IndexReader::check_remaining(std::uint64_t count) const {
    if (count <= remaining()) return ok();
    if (end_ < source_.bytes())
        return invalid_argument(
            "{} bytes at byte {} go beyond the first {} bytes, the limit for "
            "metadata and tensor table",
            count, position(), kIndexBytesMax);
    return data_loss("{} bytes at byte {} go past the end of the file ({} bytes)", count,
                     position(), source_.bytes());
}

Error IndexReader::refill() {
    buffer_offset_ += buffer_.size();
    buffer_position_ = 0;
    buffer_.resize(static_cast<std::size_t>(std::min(kPieceBytes, end_ - buffer_offset_)));
    return source_.read(buffer_offset_, buffer_);
}

Error IndexReader::read_into(std::span<std::byte> target) {
    ARTEL_TRY(check_remaining(target.size()));
    while (!target.empty()) {
        if (buffer_position_ == buffer_.size()) ARTEL_TRY(refill());
        const std::size_t count = std::min(target.size(), buffer_.size() - buffer_position_);
        std::memcpy(target.data(), buffer_.data() + buffer_position_, count);
        buffer_position_ += count;
        target = target.subspan(count);
    }
    return ok();
}

Error IndexReader::append(std::uint64_t count, std::string& text) {
    ARTEL_TRY(check_remaining(count));
    const std::size_t first = text.size();
    text.resize(first + static_cast<std::size_t>(count));
    return read_into(std::as_writable_bytes(std::span(text).subspan(first)));
}

Result<std::string> IndexReader::read_string(std::uint64_t bytes_max) {
    ARTEL_ASSIGN(const auto length, read<std::uint64_t>());
    if (length > bytes_max)
        return invalid_argument("length {} is over the limit of {} bytes", length, bytes_max);
    std::string text;
    ARTEL_TRY(append(length, text));
    return text;
}

}  // namespace artel::gguf
