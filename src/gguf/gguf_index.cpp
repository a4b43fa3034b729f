// SPDX-License-Identifier: Apache-2.0
#include "gguf/gguf_index.hpp"

#include <fmt/format.h>

#include "base/byte_count.hpp"
#include "gguf/limits.hpp"
#include "gguf/names.hpp"
#include "gguf/shard_parser.hpp"
#include "gguf/shard_paths.hpp"

namespace artel::gguf {

namespace {

constexpr const char* kSplitNumber = "split.no";  // from 0, while file names count from 1
constexpr const char* kSplitCount = "split.count";
constexpr const char* kSplitTensors = "split.tensors.count";  // over all parts
constexpr const char* kArchitecture = "general.architecture";

/// "b.gguf", or "part 2" in memory.
std::string shard_label(const Shard& shard, std::size_t position) {
    if (shard.path.empty()) return fmt::format("part {}", position + 1);
    return shard.path.filename().string();
}

}  // namespace

/// Puts the shards of one model together and checks that they belong together.
class GgufIndexBuilder {
  public:
    explicit GgufIndexBuilder(std::size_t shard_count) : shard_count_(shard_count) {}

    Error add(ParsedShard parsed) {
        const std::size_t position = index_.shards_.size();
        const std::string label = shard_label(parsed.shard, position);
        ARTEL_TRY(with_context(check_split_keys(parsed.metadata, position), label));
        if (position == 0) index_.metadata_ = std::move(parsed.metadata);
        index_.shards_.push_back(std::move(parsed.shard));
        for (TensorInfo& tensor : parsed.tensors) {
            tensor.shard = static_cast<std::uint32_t>(position);
            ARTEL_TRY(with_context(add_tensor(std::move(tensor)), label));
        }
        return ok();
    }

    Result<GgufIndex> finish() {
        if (shard_count_ > 1) {
            ARTEL_ASSIGN(const auto total, index_.metadata_.get<std::uint64_t>(kSplitTensors));
            if (total != index_.tensors_.size())
                return invalid_argument("metadata key '{}' says {} tensors, the {} parts hold {}",
                                        kSplitTensors, total, shard_count_, index_.tensors_.size());
        }
        return std::move(index_);
    }

  private:
    Error check_split_keys(const Metadata& metadata, std::size_t position) const {
        ARTEL_ASSIGN(const auto count, metadata.find<std::uint32_t>(kSplitCount));
        if (count && *count == 0) return invalid_argument("metadata key '{}' is 0", kSplitCount);
        if (shard_count_ == 1 && count && *count > 1)
            return invalid_argument(
                "this is one of {} parts of a model; name the files "
                "NAME-00001-of-{:05}.gguf and so on, in one folder",
                *count, *count);
        if (shard_count_ == 1) return ok();
        ARTEL_TRY(expect(metadata, kSplitCount, shard_count_));
        ARTEL_TRY(expect(metadata, kSplitNumber, position));
        if (position == 0) return ok();
        ARTEL_ASSIGN(const auto total, index_.metadata_.get<std::uint64_t>(kSplitTensors));
        ARTEL_TRY(expect(metadata, kSplitTensors, total));
        return check_architecture(metadata);
    }

    static Error expect(const Metadata& metadata, std::string_view key, std::uint64_t expected) {
        ARTEL_ASSIGN(const auto found, metadata.get<std::uint64_t>(key));
        if (found == expected) return ok();
        return invalid_argument(
            "metadata key '{}' is {}, expected {}: this file does not belong "
            "in this place of this model",
            key, found, expected);
    }

    /// Parts after the first need no metadata of the model, but what they have must agree.
    Error check_architecture(const Metadata& metadata) const {
        ARTEL_ASSIGN(const auto mine, metadata.find<std::string_view>(kArchitecture));
        ARTEL_ASSIGN(const auto first, index_.metadata_.find<std::string_view>(kArchitecture));
        if (!mine || mine == first) return ok();
        return invalid_argument("metadata key '{}' is {}, in the first part it is {}",
                                kArchitecture, quote_name(*mine),
                                quote_name(first.value_or("missing")));
    }

    Error add_tensor(TensorInfo tensor) {
        const auto [place, is_new] =
            index_.positions_.try_emplace(tensor.name, index_.tensors_.size());
        if (!is_new) {
            const std::uint32_t other = index_.tensors_[place->second].shard;
            return invalid_argument("tensor {} occurs twice (also in {})", quote_name(tensor.name),
                                    shard_label(index_.shards_[other], other));
        }
        const auto sum = checked_add(index_.tensor_bytes_, tensor.bytes);
        if (!sum || *sum > static_cast<std::uint64_t>(INT64_MAX))
            return invalid_argument("the sum of all tensors' bytes does not fit in 63 bits");
        index_.tensor_bytes_ = *sum;
        index_.tensors_.push_back(std::move(tensor));
        return ok();
    }

    std::size_t shard_count_;
    GgufIndex index_;
};

Result<GgufIndex> GgufIndex::open(const std::filesystem::path& path, BlockSizeLookup block_size) {
    ARTEL_ASSIGN(const auto paths, find_shards(path));
    GgufIndexBuilder builder(paths.size());
    for (const std::filesystem::path& shard_path : paths) {
        ARTEL_ASSIGN(const FileSource source, FileSource::open(shard_path));
        Result<ParsedShard> parsed = parse_shard(source, block_size);
        if (!parsed.ok()) return with_context(parsed.status(), shard_path.filename().string());
        parsed->shard.path = shard_path;
        ARTEL_TRY(builder.add(*std::move(parsed)));
    }
    return builder.finish();
}

Result<GgufIndex> GgufIndex::parse(std::span<const std::span<const std::byte>> shards,
                                   BlockSizeLookup block_size) {
    if (shards.empty()) return invalid_argument("a model needs at least one file");
    GgufIndexBuilder builder(shards.size());
    for (std::size_t i = 0; i < shards.size(); ++i) {
        Result<ParsedShard> parsed = parse_shard(MemorySource(shards[i]), block_size);
        if (!parsed.ok()) return with_context(parsed.status(), shard_label({}, i));
        ARTEL_TRY(builder.add(*std::move(parsed)));
    }
    return builder.finish();
}

const TensorInfo* GgufIndex::find_tensor(std::string_view name) const {
    const auto found = positions_.find(name);
    return found == positions_.end() ? nullptr : &tensors_[found->second];
}

Error check_data_present(const GgufIndex& index) {
    for (const TensorInfo& tensor : index.tensors()) {
        const Shard& shard = index.shards()[tensor.shard];
        const std::uint64_t end = tensor.offset + tensor.bytes;
        if (end > shard.file_bytes)
            return data_loss(
                "{}: tensor {} is bytes {} to {}, but the file ends at byte {} ({} "
                "bytes missing); it is cut short or still being copied",
                shard_label(shard, tensor.shard), quote_name(tensor.name), tensor.offset, end,
                shard.file_bytes, end - shard.file_bytes);
    }
    return ok();
}

}  // namespace artel::gguf
