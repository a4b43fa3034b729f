// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator_storage.hpp"

#include "protocol/hash.hpp"

namespace artel::runtime {

void CoordinatorStorage::read(cluster::NodeId requester, const protocol::WeightsRequest& request) {
    const bool is_manifest = request.range.part == protocol::ModelPart::Manifest;
    (is_manifest ? hasher_ : reader_).post([this, requester, request, is_manifest] {
        std::uint64_t part_bytes = 0;
        const auto bytes = is_manifest ? read_manifest(request.range, part_bytes)
                                       : model_->read(request.range, part_bytes);
        answer(requester, request, bytes, part_bytes);
    });
}

void CoordinatorStorage::answer(cluster::NodeId requester, const protocol::WeightsRequest& request,
                                const Result<std::vector<std::byte>>& bytes,
                                std::uint64_t part_bytes) {
    protocol::WeightsChunk chunk;
    chunk.epoch = request.epoch;
    chunk.model = request.model;
    chunk.range = request.range;
    chunk.bytes_total = part_bytes;
    if (bytes.ok()) {
        chunk.payload = SharedBytes(std::vector<std::byte>(*bytes));
        chunk.hash = protocol::hash_bytes(chunk.payload.span());
    } else {
        chunk.error = std::string(bytes.status().message());
    }
    loop_.post([this, alive = is_alive_, requester, chunk = std::move(chunk)]() mutable {
        if (*alive) on_event_(cluster::RangeRead{requester, std::move(chunk)});
    });
}

/// Whole entries only: entry 0 is the file's identity, entry n + 1 the hash of tensor n.
Result<std::vector<std::byte>> CoordinatorStorage::read_manifest(
    const protocol::WeightsRange& range, std::uint64_t& part_bytes) {
    part_bytes = kManifestEntryBytes * (1 + model_->index().tensors().size());
    const bool is_aligned =
        range.offset % kManifestEntryBytes == 0 && range.bytes % kManifestEntryBytes == 0;
    if (!is_aligned || range.offset > part_bytes || range.bytes > part_bytes - range.offset)
        return invalid_argument("bytes {} to {} of a manifest of {} bytes", range.offset,
                                range.offset + range.bytes, part_bytes);
    ByteWriter writer;
    const std::uint64_t first = range.offset / kManifestEntryBytes;
    for (std::uint64_t entry = first; entry < first + range.bytes / kManifestEntryBytes; ++entry) {
        protocol::Hash128 hash = identity_;
        if (entry > 0) {
            ARTEL_ASSIGN(hash, hashes_.of(static_cast<std::uint32_t>(entry - 1)));
        }
        writer.write<std::uint64_t>(hash.high);
        writer.write<std::uint64_t>(hash.low);
    }
    return writer.take();
}

void CoordinatorStorage::put(const std::string& key, std::vector<std::byte> record) {
    records_.put(key, std::move(record),
                 [this, alive = is_alive_](const cluster::RecordStored& stored) {
                     if (*alive) on_event_(stored);
                 });
}

}  // namespace artel::runtime
