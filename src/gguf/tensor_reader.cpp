// SPDX-License-Identifier: Apache-2.0
#include "gguf/tensor_reader.hpp"

#include "gguf/names.hpp"

namespace artel::gguf {

Result<TensorReader> TensorReader::open(const GgufIndex& index) {
    ARTEL_TRY(check_data_present(index));
    TensorReader reader;
    for (const Shard& shard : index.shards()) {
        if (shard.path.empty())
            return failed_precondition("an index parsed from memory has no file to read from");
        ARTEL_ASSIGN(FileSource file, FileSource::open(shard.path));
        if (file.bytes() != shard.file_bytes)
            return failed_precondition("{} has {} bytes, it had {} when its index was read",
                                       shard.path.string(), file.bytes(), shard.file_bytes);
        reader.files_.push_back(std::move(file));
    }
    return reader;
}

Error TensorReader::read(const TensorInfo& tensor, std::uint64_t first,
                         std::span<std::byte> target) const {
    if (tensor.shard >= files_.size() || first > tensor.bytes ||
        target.size() > tensor.bytes - first)
        return invalid_argument("tensor {}: {} bytes from byte {} are not within its {} bytes",
                                quote_name(tensor.name), target.size(), first, tensor.bytes);
    return with_context(files_[tensor.shard].read(tensor.offset + first, target),
                        fmt::format("tensor {}", quote_name(tensor.name)));
}

Result<std::vector<std::byte>> TensorReader::read_all(const TensorInfo& tensor) const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
    ARTEL_TRY(read(tensor, 0, bytes));
    return bytes;
}

}  // namespace artel::gguf
