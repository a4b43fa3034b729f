// SPDX-License-Identifier: Apache-2.0
#include "cli/float_file.hpp"

#include "base/file.hpp"

namespace artel::cli {

Result<FloatFile> FloatFile::create(const std::string& wanted) {
    ARTEL_ASSIGN(const std::string path, path_for_output(wanted));
    std::FILE* file = std::fopen(path.c_str(), "wbe");
    if (file == nullptr) return errno_error("creating " + path);
    return FloatFile(path, file);
}

FloatFile::~FloatFile() {
    if (file_ == nullptr) return;
    file_.reset();
    std::remove(path_.c_str());
}

Error FloatFile::write(std::span<const float> values) {
    if (std::fwrite(values.data(), sizeof(float), values.size(), file_.get()) == values.size())
        return ok();
    return errno_error("writing " + path_);
}

Error FloatFile::finish() {
    if (std::fclose(file_.release()) != 0) {
        const Error error = errno_error("writing " + path_);
        std::remove(path_.c_str());
        return error;
    }
    return ok();
}

}  // namespace artel::cli
