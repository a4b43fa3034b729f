// SPDX-License-Identifier: Apache-2.0
// Small files: read whole with a limit, write so that a reader or a crash sees the old or the new
// bytes. Not for model data (gguf/ reads ranges) and never used below runtime/, net/, api/ and
// cli/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace artel {

/// The bytes of a regular file, or of a pipe up to its end. Errors: NotFound, InvalidArgument
/// (neither of them, or more than `bytes_max`), Unavailable (read error), DeadlineExceeded (nothing
/// came through the pipe for 10 s).
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t bytes_max);

/// Where a file that a user names for output goes: `path`, or the file that a link there leads to.
/// Errors: InvalidArgument (there is something else, which must neither be waited for nor replaced:
/// a device, a pipe, a directory, a link to nothing), Unavailable.
Result<std::filesystem::path> path_for_output(const std::filesystem::path& path);

/// Writes a temporary file beside `path`, syncs it and renames it over `path`. `mode` as for
/// open(2). Errors: those of path_for_output, PermissionDenied, ResourceExhausted (disk full),
/// Unavailable.
Error write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                            unsigned mode = 0644);

/// Makes a directory and its parents; a new one is readable by its owner only.
Error make_private_directory(const std::filesystem::path& path);

/// Takes the directory for this process until the descriptor goes; the file `lock` in it stays.
/// Errors: FailedPrecondition (another process holds it), those of opening a file for writing.
Result<Descriptor> lock_directory(const std::filesystem::path& path);

/// An Error for `errno`, e.g. errno_error("opening x") -> NotFound "opening x: No such file or
/// directory".
Error errno_error(std::string_view what);

}  // namespace artel
