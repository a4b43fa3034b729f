// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace artel {
namespace {

Error write_all(int fd, std::span<const std::byte> bytes, std::string_view what) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno_error(what);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return ok();
}

/// The rename itself must survive a power cut, so the directory is synced too.
void sync_directory(const std::filesystem::path& directory) {
    const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() >= 0) ::fsync(fd.get());
}

constexpr int kPipePatienceMs = 10'000;

/// A pipe that nobody has opened for writing yet reads as if it had ended; poll waits for a writer.
Error wait_for_writer(int fd, std::string_view what) {
    pollfd watched{fd, POLLIN, 0};
    int ready = -1;
    do ready = ::poll(&watched, 1, kPipePatienceMs);
    while (ready < 0 && errno == EINTR);
    if (ready < 0) return errno_error(what);
    if (ready > 0) return ok();
    return deadline_exceeded("{}: nothing came through this pipe for {} s", what,
                             kPipePatienceMs / 1000);
}

}  // namespace

Error errno_error(std::string_view what) {
    const int number = errno;
    const auto code =
        number == ENOENT                                           ? ErrorCode::kNotFound
        : number == EACCES || number == EPERM || number == EROFS   ? ErrorCode::kPermissionDenied
        : number == ENOSPC || number == EDQUOT || number == EMFILE ? ErrorCode::kResourceExhausted
                                                                   : ErrorCode::kUnavailable;
    return make_error(code, "{}: {}", what, std::generic_category().message(number));
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
    const std::string what = fmt::format("reading {}", path.string());
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd.get() < 0) return errno_error(what);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return errno_error(what);
    const bool is_pipe = S_ISFIFO(status.st_mode);  // an inherited descriptor, e.g. /dev/fd/3
    if (!S_ISREG(status.st_mode) && !is_pipe)
        return invalid_argument("{}: not a regular file", what);
    std::string bytes;
    char buffer[65536];
    while (true) {
        if (is_pipe) ARTEL_TRY(wait_for_writer(fd.get(), what));
        const ssize_t count = ::read(fd.get(), buffer, sizeof(buffer));
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (count < 0) return errno_error(what);
        if (count == 0) return bytes;
        if (bytes.size() + static_cast<std::size_t>(count) > bytes_max)
            return invalid_argument("{}: larger than the {} bytes allowed", what, bytes_max);
        bytes.append(buffer, static_cast<std::size_t>(count));
    }
}

Result<std::filesystem::path> path_for_output(const std::filesystem::path& path) {
    std::error_code failure;
    const auto link = std::filesystem::symlink_status(path, failure);
    // What keeps this from being known, opening it will say.
    if (failure || !std::filesystem::exists(link)) return path;
    const auto target = std::filesystem::status(path, failure);
    if (target.type() == std::filesystem::file_type::not_found)
        return invalid_argument("writing {}: a link to a file that does not exist", path.string());
    if (failure) return unavailable("writing {}: {}", path.string(), failure.message());
    if (!std::filesystem::is_regular_file(target))
        return invalid_argument("writing {}: this is not a regular file", path.string());
    if (!std::filesystem::is_symlink(link)) return path;
    auto resolved = std::filesystem::canonical(path, failure);
    if (failure) return unavailable("writing {}: {}", path.string(), failure.message());
    return resolved;
}

Error write_file_atomically(const std::filesystem::path& wanted, std::span<const std::byte> bytes,
                            unsigned mode) {
    ARTEL_ASSIGN(const std::filesystem::path path, path_for_output(wanted));
    const std::string what = fmt::format("writing {}", path.string());
    std::string temporary = path.string() + ".XXXXXX";
    const Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (fd.get() < 0) return errno_error(what);
    Error error = write_all(fd.get(), bytes, what);
    if (error.ok() && ::fchmod(fd.get(), mode) != 0) error = errno_error(what);
    if (error.ok() && ::fsync(fd.get()) != 0) error = errno_error(what);
    if (error.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno_error(what);
    if (!error.ok()) {
        ::unlink(temporary.c_str());
        return error;
    }
    sync_directory(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
    return ok();
}

Error make_private_directory(const std::filesystem::path& path) {
    std::error_code failure;
    if (std::filesystem::is_directory(path, failure)) return ok();
    if (path.has_parent_path()) {
        std::filesystem::create_directories(path.parent_path(), failure);
        if (failure)
            return unavailable("making directory {}: {}", path.parent_path().string(),
                               failure.message());
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
        return errno_error(fmt::format("making directory {}", path.string()));
    return ok();
}

Result<Descriptor> lock_directory(const std::filesystem::path& path) {
    const std::filesystem::path file = path / "lock";
    Descriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (fd.get() < 0) return errno_error(fmt::format("opening {}", file.string()));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno == EWOULDBLOCK)
        return failed_precondition("{} is in use by another process", path.string());
    return errno_error(fmt::format("locking {}", file.string()));
}

}  // namespace artel
