// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "gguf/byte_source.hpp"
#include "protocol/hash.hpp"

namespace artel::runtime {
namespace {

struct Trailer {
    std::uint64_t length;
    std::uint64_t hash_high;
    std::uint64_t hash_low;
};
static_assert(sizeof(Trailer) == 24);

class FileWriter final : public TensorCache::Writer {
  public:
    FileWriter(int fd, std::string temporary, std::filesystem::path target)
        : fd_(fd), temporary_(std::move(temporary)), target_(std::move(target)) {}
    ~FileWriter() override {
        if (!is_committed_) ::unlink(temporary_.c_str());
    }
    Error append(std::span<const std::byte> bytes) override {
        hash_.add(bytes);
        length_ += bytes.size();
        return write_all(bytes);
    }
    Error commit() override {
        const protocol::Hash128 hash = hash_.value();
        const Trailer trailer{length_, hash.high, hash.low};
        ARTEL_TRY(write_all(std::as_bytes(std::span(&trailer, 1))));
        if (::fsync(fd_.get()) != 0) return errno_error("syncing " + temporary_);
        if (::rename(temporary_.c_str(), target_.c_str()) != 0)
            return errno_error("renaming " + temporary_);
        is_committed_ = true;
        return ok();
    }

  private:
    Error write_all(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return errno_error("writing " + temporary_);
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        }
        return ok();
    }
    Descriptor fd_;
    std::string temporary_;
    std::filesystem::path target_;
    protocol::StreamHash hash_;
    std::uint64_t length_ = 0;
    bool is_committed_ = false;
};

}  // namespace

TensorCache::TensorCache(std::filesystem::path directory, const protocol::Hash128& model)
    : directory_(std::move(directory) / protocol::to_hex(model)) {}

std::filesystem::path TensorCache::path(std::uint32_t tensor) const {
    return directory_ / std::to_string(tensor);
}

bool TensorCache::has(std::uint32_t tensor) const {
    std::error_code failure;
    return std::filesystem::is_regular_file(path(tensor), failure);
}

bool TensorCache::check(std::uint32_t tensor, std::uint64_t bytes,
                        const protocol::Hash128& expected) const {
    const auto source = gguf::FileSource::open(path(tensor));
    if (!source.ok() || source->bytes() != bytes + sizeof(Trailer)) return false;
    Trailer trailer{};
    if (!source->read(bytes, std::as_writable_bytes(std::span(&trailer, 1))).ok()) return false;
    const protocol::Hash128 stated{trailer.hash_high, trailer.hash_low};
    if (trailer.length != bytes || stated != expected) return false;  // of another file, or damaged
    protocol::StreamHash hash;
    std::vector<std::byte> buffer(1 << 20);
    for (std::uint64_t offset = 0; offset < bytes; offset += buffer.size()) {
        const std::span<std::byte> piece(buffer.data(),
                                         std::min<std::uint64_t>(buffer.size(), bytes - offset));
        if (!source->read(offset, piece).ok()) return false;
        hash.add(piece);
    }
    return hash.value() == expected;
}

Error TensorCache::read(std::uint32_t tensor, std::uint64_t offset,
                        std::span<std::byte> target) const {
    ARTEL_ASSIGN(const auto source, gguf::FileSource::open(path(tensor)));
    return source.read(offset, target);
}

Result<std::unique_ptr<TensorCache::Writer>> TensorCache::write(std::uint32_t tensor) const {
    ARTEL_TRY(make_private_directory(directory_));
    std::string temporary = path(tensor).string() + ".XXXXXX";
    const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (fd < 0) return errno_error("making " + temporary);
    return std::unique_ptr<Writer>(std::make_unique<FileWriter>(fd, temporary, path(tensor)));
}

}  // namespace artel::runtime
