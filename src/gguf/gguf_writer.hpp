// SPDX-License-Identifier: Apache-2.0
// GgufWriter: makes small GGUF files (version 3), for tests and for models of a few megabytes. It
// keeps everything in memory and checks nothing: tests use it to write wrong files too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "gguf/metadata.hpp"

namespace artel::gguf {

class GgufWriter {
  public:
    template <MetadataType T>
    void add_metadata(std::string_view key, T value);
    void add_metadata(std::string_view key, const char* value) {
        add_metadata(key, std::string_view(value));
    }
    template <MetadataType T>
    void add_metadata_array(std::string_view key, const std::vector<T>& values);

    /// dims as in the file (row length first). The bytes are copied.
    void add_tensor(std::string_view name, std::vector<std::uint64_t> dims, std::uint32_t type_id,
                    std::span<const std::byte> bytes);
    /// Of 4-byte floats (type F32).
    void add_tensor(std::string_view name, std::vector<std::uint64_t> dims,
                    std::span<const float> values);

    /// Must equal the metadata's general.alignment, if that is given; 32 unless set.
    void set_alignment(std::uint32_t alignment) { alignment_ = alignment; }

    std::vector<std::byte> to_bytes() const;
    Error write(const std::filesystem::path& path) const;

  private:
    struct Tensor {
        std::string name;
        std::vector<std::uint64_t> dims;
        std::uint32_t type_id;
        std::vector<std::byte> bytes;
    };
    ByteWriter metadata_;
    std::uint64_t entry_count_ = 0;
    std::vector<Tensor> tensors_;
    std::uint32_t alignment_ = 32;
};

}  // namespace artel::gguf
