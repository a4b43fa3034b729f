// SPDX-License-Identifier: Apache-2.0
// A tiny model as a file in a directory that goes with the object, and copies of it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "runtime/model_file.hpp"
#include "support/tiny_model.hpp"

namespace artel::test {

class ModelOnDisk {
  public:
    ModelOnDisk() {
        std::string name =
            (std::filesystem::temp_directory_path() / "artel-nodes-test-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        directory_ = name;
        std::filesystem::create_directories(path().parent_path());
        const auto tiny = TinyModel::create("llama");
        std::ofstream file(path(), std::ios::binary);
        file.write(reinterpret_cast<const char*>(tiny->file().data()),
                   static_cast<std::streamsize>(tiny->file().size()));
    }
    ~ModelOnDisk() {
        std::error_code ignored;
        std::filesystem::remove_all(directory_, ignored);
    }

    const std::filesystem::path& directory() const { return directory_; }
    std::filesystem::path path() const { return directory_ / "models" / "tiny.gguf"; }
    std::shared_ptr<const runtime::ModelFile> open(const std::filesystem::path& which) const {
        auto file = runtime::ModelFile::open(which);
        EXPECT_TRUE(file.ok()) << file.status().message();
        return file.ok() ? *std::move(file) : nullptr;
    }
    /// Another file with the same bytes but for the last byte of `tensor`, which is flipped.
    std::filesystem::path copy_with_flipped_byte(const std::string& tensor) const {
        const auto target = directory_ / "copy" / "tiny.gguf";
        std::filesystem::create_directories(target.parent_path());
        std::filesystem::copy_file(path(), target,
                                   std::filesystem::copy_options::overwrite_existing);
        flip_last_byte(target, tensor);
        return target;
    }
    void flip_last_byte(const std::filesystem::path& which, const std::string& tensor) const {
        const auto file = open(which);
        const gguf::TensorInfo* found = file->index().find_tensor(tensor);
        ASSERT_NE(found, nullptr) << tensor;
        std::fstream stream(which, std::ios::binary | std::ios::in | std::ios::out);
        const auto at = static_cast<std::streamoff>(found->offset + found->bytes - 1);
        stream.seekg(at);
        const int byte = stream.get();
        stream.seekp(at);
        stream.put(static_cast<char>(byte ^ 0x40));
    }

  private:
    std::filesystem::path directory_;
};

}  // namespace artel::test
