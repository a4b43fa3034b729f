// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_file.hpp"

#include "base/bytes.hpp"
#include "gguf/byte_source.hpp"
#include "protocol/hash.hpp"
#include "protocol/limits.hpp"
#include "quant/type_names.hpp"

namespace artel::runtime {
namespace {

constexpr std::uint32_t kShardsMax = 10'000;

Result<std::vector<std::byte>> read_index_blob(const gguf::GgufIndex& index) {
    ByteWriter writer;
    writer.write<std::uint32_t>(static_cast<std::uint32_t>(index.shards().size()));
    for (const gguf::Shard& shard : index.shards()) writer.write(shard.index_bytes);
    for (const gguf::Shard& shard : index.shards()) {
        ARTEL_ASSIGN(const auto source, gguf::FileSource::open(shard.path));
        std::vector<std::byte> bytes(static_cast<std::size_t>(shard.index_bytes));
        ARTEL_TRY(source.read(0, bytes));
        writer.write_bytes(bytes);
    }
    return writer.take();
}

}  // namespace

Result<std::shared_ptr<const ModelFile>> ModelFile::open(const std::filesystem::path& path) {
    ARTEL_ASSIGN(gguf::GgufIndex index, gguf::GgufIndex::open(path, quant::block_size_of));
    std::shared_ptr<ModelFile> file(new ModelFile(std::move(index)));
    ARTEL_ASSIGN(file->blob_, read_index_blob(file->index_));
    file->digest_ = protocol::hash_bytes(file->blob_);
    ARTEL_ASSIGN(auto reader, gguf::TensorReader::open(file->index_));
    file->reader_.push_back(std::move(reader));
    return std::shared_ptr<const ModelFile>(std::move(file));
}

Result<protocol::Hash128> ModelFile::digest_of(const std::filesystem::path& path) {
    ARTEL_ASSIGN(const gguf::GgufIndex index, gguf::GgufIndex::open(path, quant::block_size_of));
    ARTEL_ASSIGN(const auto blob, read_index_blob(index));
    return protocol::hash_bytes(blob);
}

std::uint64_t ModelFile::file_bytes() const {
    std::uint64_t bytes = 0;
    for (const gguf::Shard& shard : index_.shards()) bytes += shard.file_bytes;
    return bytes;
}

Result<std::vector<std::byte>> ModelFile::read(const protocol::WeightsRange& range,
                                               std::uint64_t& part_bytes) const {
    const auto check = [&](std::uint64_t total) -> Error {
        part_bytes = total;
        if (range.offset > total || range.bytes > total - range.offset)
            return invalid_argument("bytes {} to {} of a part of {} bytes", range.offset,
                                    range.offset + range.bytes, total);
        return ok();
    };
    std::vector<std::byte> bytes(range.bytes);
    switch (range.part) {
        case protocol::ModelPart::Index: {
            ARTEL_TRY(check(blob_.size()));
            const auto first = blob_.begin() + static_cast<std::ptrdiff_t>(range.offset);
            std::copy(first, first + static_cast<std::ptrdiff_t>(range.bytes), bytes.begin());
            return bytes;
        }
        case protocol::ModelPart::Tensor: {
            if (range.tensor >= index_.tensors().size())
                return invalid_argument("tensor {} of a model with {}", range.tensor,
                                        index_.tensors().size());
            const gguf::TensorInfo& tensor = index_.tensors()[range.tensor];
            ARTEL_TRY(check(tensor.bytes));
            ARTEL_TRY(reader_.front().read(tensor, range.offset, bytes));
            return bytes;
        }
        case protocol::ModelPart::Manifest:
            break;
    }
    return unimplemented("this part of a model is not served");
}

Result<gguf::GgufIndex> parse_index_blob(std::span<const std::byte> blob) {
    ByteReader reader(blob);
    ARTEL_ASSIGN(const auto count, reader.read<std::uint32_t>());
    if (count == 0 || count > kShardsMax)
        return data_loss("index of {} shards; expected 1 to {}", count, kShardsMax);
    std::vector<std::uint64_t> sizes;
    for (std::uint32_t i = 0; i < count; ++i) {
        ARTEL_ASSIGN(const auto size, reader.read<std::uint64_t>());
        sizes.push_back(size);
    }
    std::vector<std::span<const std::byte>> shards;
    for (const std::uint64_t size : sizes) {
        ARTEL_ASSIGN(const auto shard, reader.read_bytes(size));
        shards.push_back(shard);
    }
    return gguf::GgufIndex::parse(shards, quant::block_size_of);
}

}  // namespace artel::runtime
