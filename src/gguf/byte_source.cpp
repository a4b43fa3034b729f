// SPDX-License-Identifier: Apache-2.0
#include "gguf/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/byte_count.hpp"
#include "base/file.hpp"

namespace artel::gguf {

namespace {

Error check_range(std::uint64_t offset, std::uint64_t count, std::uint64_t bytes) {
    const auto end = checked_add(offset, count);
    if (!end || *end > bytes)
        return data_loss("{} bytes wanted at byte {}, but the file has {}", count, offset, bytes);
    return ok();
}

/// What a path is, where it can't be a model file.
const char* describe_file_kind(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "of another kind";
}

}  // namespace

Error MemorySource::read(std::uint64_t offset, std::span<std::byte> target) const {
    ARTEL_TRY(check_range(offset, target.size(), memory_.size()));
    std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(offset), target.size(),
                target.begin());
    return ok();
}

Result<FileSource> FileSource::open(const std::filesystem::path& path) {
    int number = -1;
    do {  // non-blocking, since opening a pipe would wait for a writer
        number = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    } while (number < 0 && errno == EINTR);
    if (number < 0) return errno_error(fmt::format("opening {}", path.string()));
    FileSource file(Descriptor(number), 0);
    struct stat status {};
    if (::fstat(number, &status) != 0)
        return errno_error(fmt::format("asking about {}", path.string()));
    if (!S_ISREG(status.st_mode))
        return invalid_argument("{} is {}, not a regular file", path.string(),
                                describe_file_kind(status.st_mode));
    file.bytes_ = static_cast<std::uint64_t>(status.st_size);
    return file;
}

Error FileSource::read(std::uint64_t offset, std::span<std::byte> target) const {
    ARTEL_TRY(check_range(offset, target.size(), bytes_));
    while (!target.empty()) {
        const ssize_t count =
            ::pread(descriptor_.get(), target.data(), target.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return unavailable("read error at byte {}: {}", offset, strerror(errno));
        if (count == 0)
            return data_loss("the file ends at byte {}, it had {} when it was opened", offset,
                             bytes_);
        target = target.subspan(static_cast<std::size_t>(count));
        offset += static_cast<std::uint64_t>(count);
    }
    return ok();
}

}  // namespace artel::gguf
