// SPDX-License-Identifier: Apache-2.0
#include "runtime/weight_sources.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/log.hpp"
#include "runtime/tensor_hashes.hpp"

namespace artel::runtime {
namespace {

using protocol::Hash128;

constexpr std::uint32_t kHashesAhead = 2;  // asked of the coordinator while one is compared here

class TrustedWeights final : public engine::WeightSource {
  public:
    explicit TrustedWeights(WeightSourceParts parts) : parts_(std::move(parts)) {
        if (parts_.local) local_hashes_.emplace(parts_.local, parts_.state_dir);
    }

    Error read(std::string_view name, std::uint64_t offset, std::span<std::byte> target) override {
        if (parts_.stream->is_aborted()) return cancelled("loading was replaced");
        const gguf::TensorInfo* tensor = parts_.index->find_tensor(name);
        if (tensor == nullptr) return not_found("tensor '{}'", name);
        const auto number = static_cast<std::uint32_t>(tensor - parts_.index->tensors().data());
        if (offset == 0) {
            ARTEL_ASSIGN(place_, choose(*tensor, number));
        }
        if (place_ == Place::Local) return read_local(number, offset, target);
        if (place_ == Place::Cache) return parts_.cache->read(number, offset, target);
        ARTEL_TRY(parts_.stream->read(protocol::ModelPart::Tensor, number, tensor->bytes, offset,
                                      target));
        keep(target, offset + target.size() == tensor->bytes);
        return ok();
    }

  private:
    enum class Place { Local, Cache, Stream };
    Result<Place> choose(const gguf::TensorInfo& tensor, std::uint32_t number);
    Result<bool> is_local_sound(const gguf::TensorInfo& tensor, std::uint32_t number);
    Result<Hash128> manifest_entry(std::uint64_t entry);
    Result<Hash128> wanted_hash(std::uint32_t number);
    Error read_local(std::uint32_t number, std::uint64_t offset, std::span<std::byte> target);
    void keep(std::span<const std::byte> bytes, bool is_last);
    void give_up_cache(const Error& error);

    WeightSourceParts parts_;
    std::optional<TensorHashes> local_hashes_;
    std::optional<bool> is_same_file_;  // as the coordinator's
    Place place_ = Place::Stream;       // of the tensor being read
    std::unique_ptr<TensorCache::Writer> writer_;
};

Result<TrustedWeights::Place> TrustedWeights::choose(const gguf::TensorInfo& tensor,
                                                     std::uint32_t number) {
    writer_.reset();
    if (parts_.local) {
        ARTEL_ASSIGN(const bool is_sound, is_local_sound(tensor, number));
        if (is_sound) return Place::Local;
    }
    if (!parts_.cache) return Place::Stream;
    if (parts_.cache->has(number)) {
        ARTEL_ASSIGN(const Hash128 wanted, wanted_hash(number));
        if (parts_.cache->check(number, tensor.bytes, wanted)) return Place::Cache;
    }
    auto writer = parts_.cache->write(number);
    if (writer.ok())
        writer_ = *std::move(writer);
    else
        give_up_cache(writer.status());
    return Place::Stream;
}

Result<bool> TrustedWeights::is_local_sound(const gguf::TensorInfo& tensor, std::uint32_t number) {
    if (!is_same_file_) {
        ARTEL_ASSIGN(const Hash128 theirs, manifest_entry(0));
        is_same_file_ = theirs != Hash128{} && theirs == file_identity(*parts_.local);
    }
    if (*is_same_file_) return true;
    ARTEL_ASSIGN(const Hash128 wanted, wanted_hash(number));
    const auto found = local_hashes_->of(number);
    if (found.ok() && *found == wanted) return true;
    const auto& shards = parts_.local->index().shards();
    log_warning("a tensor of the local copy is not the coordinator's; it is fetched from there",
                {{"tensor", tensor.name},
                 {"file", shards[tensor.shard].path.string()},
                 {"reason", found.ok() ? std::string("its bytes differ")
                                       : std::string(found.status().message())}});
    return false;
}

Result<Hash128> TrustedWeights::wanted_hash(std::uint32_t number) {
    const auto count = static_cast<std::uint32_t>(parts_.index->tensors().size());
    for (std::uint32_t ahead = 1; ahead <= kHashesAhead && number + ahead < count; ++ahead)
        parts_.stream->want({protocol::ModelPart::Manifest, 0,
                             (std::uint64_t{number} + ahead + 1) * kManifestEntryBytes,
                             static_cast<std::uint32_t>(kManifestEntryBytes)});
    return manifest_entry(std::uint64_t{number} + 1);
}

Result<Hash128> TrustedWeights::manifest_entry(std::uint64_t entry) {
    ARTEL_ASSIGN(
        const auto bytes,
        parts_.stream->read_slow({protocol::ModelPart::Manifest, 0, entry * kManifestEntryBytes,
                                  static_cast<std::uint32_t>(kManifestEntryBytes)}));
    ByteReader reader(bytes);
    ARTEL_ASSIGN(const auto high, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(const auto low, reader.read<std::uint64_t>());
    return Hash128{high, low};
}

Error TrustedWeights::read_local(std::uint32_t number, std::uint64_t offset,
                                 std::span<std::byte> target) {
    while (!target.empty()) {
        const auto count = std::min<std::size_t>(target.size(), 4U << 20);
        std::uint64_t part_bytes = 0;
        ARTEL_ASSIGN(const auto bytes,
                     parts_.local->read({protocol::ModelPart::Tensor, number, offset,
                                         static_cast<std::uint32_t>(count)},
                                        part_bytes));
        std::copy(bytes.begin(), bytes.end(), target.begin());
        target = target.subspan(count);
        offset += count;
    }
    return ok();
}

void TrustedWeights::keep(std::span<const std::byte> bytes, bool is_last) {
    if (!writer_) return;
    Error error = writer_->append(bytes);
    if (error.ok() && is_last) error = writer_->commit();
    if (!error.ok()) return give_up_cache(error);
    if (is_last) writer_.reset();
}

void TrustedWeights::give_up_cache(const Error& error) {
    log_warning("weights are not cached", {{"reason", std::string(error.message())}});
    writer_.reset();
    parts_.cache.reset();
}

}  // namespace

std::unique_ptr<engine::WeightSource> make_weight_source(WeightSourceParts parts) {
    return std::make_unique<TrustedWeights>(std::move(parts));
}

}  // namespace artel::runtime
