// SPDX-License-Identifier: Apache-2.0
// The two small records that must outlive a restart: the coordinator's term (stored before its
// first plan uses it) and the largest epoch a worker obeyed. The owner of the process reads the
// file under the key and hands the value in at construction; the node stores it through
// Storage::put.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "protocol/ids.hpp"

namespace artel::cluster {

inline constexpr const char* kCoordinatorTermKey = "coordinator.epoch";
inline constexpr const char* kWorkerEpochKey = "worker.epoch";

/// 24 bytes: term, number, and a checksum of both.
std::vector<std::byte> write_epoch_record(const protocol::Epoch& epoch);
/// DataLoss when the record is damaged.
Result<protocol::Epoch> read_epoch_record(std::span<const std::byte> record);

}  // namespace artel::cluster
