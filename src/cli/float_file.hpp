// SPDX-License-Identifier: Apache-2.0
// FloatFile: a file of raw little-endian floats, written piece by piece. One that is not finished
// is removed, so that nobody takes half a file for a whole one.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"

namespace artel::cli {

class FloatFile {
  public:
    /// `path` must be free or a regular file, or a link to one; see path_for_output().
    static Result<FloatFile> create(const std::string& path);
    FloatFile(FloatFile&&) = default;
    FloatFile& operator=(FloatFile&&) = delete;
    ~FloatFile();

    Error write(std::span<const float> values);
    /// Closes the file; reports what only closing shows (a full disk).
    Error finish();

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    FloatFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;  // null once finished
};

}  // namespace artel::cli
