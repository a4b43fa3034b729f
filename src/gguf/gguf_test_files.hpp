// SPDX-License-Identifier: Apache-2.0
// Small model files for the tests of this folder: a right one, and raw bytes for wrong ones.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_size.hpp"
#include "base/bytes.hpp"
#include "gguf/gguf_index.hpp"
#include "gguf/gguf_writer.hpp"

namespace artel::gguf {

/// The types that these tests use; the real table is quant's, which this folder can't see.
inline Result<BlockSize> test_block_size(std::uint32_t type_id) {
    if (type_id == 0) return BlockSize{1, 4};       // F32
    if (type_id == 1) return BlockSize{1, 2};       // F16
    if (type_id == 8) return BlockSize{32, 34};     // Q8_0
    if (type_id == 12) return BlockSize{256, 144};  // Q4_K
    if (type_id == 24) return BlockSize{1, 1};      // I8
    return invalid_argument("type {} is not a tensor type that this build knows", type_id);
}

inline Result<GgufIndex> parse_one(std::span<const std::byte> bytes) {
    return GgufIndex::parse(std::vector{bytes}, test_block_size);
}

/// A model of three tensors, with data.
inline GgufWriter tiny_writer() {
    GgufWriter writer;
    writer.add_metadata("general.architecture", "llama");
    writer.add_metadata("llama.block_count", std::uint32_t{1});
    writer.add_metadata_array<std::string_view>("tokenizer.ggml.tokens", {"a", "", "ccc"});
    writer.add_metadata_array<float>("tokenizer.ggml.scores", {0.5F, 1.0F, -2.0F});
    writer.add_tensor("token_embd.weight", {4, 3}, std::vector<float>(12, 1.0F));
    writer.add_tensor("blk.0.attn_norm.weight", {4}, std::vector<float>{1, 2, 3, 4});
    writer.add_tensor("output.weight", {32, 2}, 8, std::vector<std::byte>(68, std::byte{7}));
    return writer;
}

/// Bytes of a file with a header of the given counts; the rest is written as it comes.
class RawFile {
  public:
    RawFile(std::uint64_t tensor_count, std::uint64_t entry_count, std::uint32_t version = 3) {
        text("GGUF").number(version).number(tensor_count).number(entry_count);
    }
    RawFile& text(std::string_view bytes) {
        writer_.write_bytes(as_bytes(bytes));
        return *this;
    }
    template <class T>
    RawFile& number(T value) {
        writer_.write(value);
        return *this;
    }
    RawFile& string(std::string_view value) {
        return number(std::uint64_t{value.size()}).text(value);
    }
    RawFile& entry(std::string_view key, ValueType type) { return string(key).number(type); }
    /// One line of the tensor table.
    RawFile& tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                    std::uint32_t type_id, std::uint64_t offset) {
        string(name).number(static_cast<std::uint32_t>(dims.size()));
        for (const std::uint64_t dim : dims) number(dim);
        return number(type_id).number(offset);
    }
    RawFile& zeros(std::size_t count) { return text(std::string(count, '\0')); }
    std::vector<std::byte> to_bytes() const { return ByteWriter(writer_).take(); }
    Result<GgufIndex> parse() const { return parse_one(to_bytes()); }

  private:
    ByteWriter writer_;
};

/// A new directory that goes away with this.
class TestDirectory {
  public:
    TestDirectory() {
        std::string path = (std::filesystem::temp_directory_path() / "gguf-test-XXXXXX").string();
        if (::mkdtemp(path.data()) != nullptr) path_ = path;
    }
    ~TestDirectory() {
        std::error_code error;
        if (!path_.empty()) std::filesystem::remove_all(path_, error);
    }
    TestDirectory(const TestDirectory&) = delete;
    TestDirectory& operator=(const TestDirectory&) = delete;
    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace artel::gguf
