// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator_storage.hpp"

#include "protocol/hash.hpp"

namespace artel::runtime {

void CoordinatorStorage::read(cluster::NodeId requester, const protocol::WeightsRequest& request) {
    reader_.post([this, requester, request] {
        protocol::WeightsChunk chunk;
        chunk.epoch = request.epoch;
        chunk.model = request.model;
        chunk.range = request.range;
        auto bytes = model_->read(request.range, chunk.bytes_total);
        if (bytes.ok()) {
            chunk.payload = SharedBytes(*std::move(bytes));
            chunk.hash = protocol::hash_bytes(chunk.payload.span());
        } else {
            chunk.error = std::string(bytes.status().message());
        }
        loop_.post([this, alive = is_alive_, requester, chunk = std::move(chunk)]() mutable {
            if (*alive) on_event_(cluster::RangeRead{requester, std::move(chunk)});
        });
    });
}

void CoordinatorStorage::put(const std::string& key, std::vector<std::byte> record) {
    records_.put(key, std::move(record),
                 [this, alive = is_alive_](const cluster::RecordStored& stored) {
                     if (*alive) on_event_(stored);
                 });
}

}  // namespace artel::runtime
