// SPDX-License-Identifier: Apache-2.0
// Probe: what this machine offers: memory that may be used (limits of control groups included), a
// name that processes of one machine share, and a rough read bandwidth and arithmetic rate for the
// planner. Takes about a tenth of a second.
#pragma once

#include <cstdint>
#include <string>

#include "protocol/messages.hpp"

namespace artel::runtime {

/// Bytes that new allocations of this process may take without swapping.
std::uint64_t available_memory_bytes();
/// The same for all processes of one machine and boot, and of no other.
std::string machine_id();
/// Bytes a second that `threads` threads read together, from memory rather than caches; the best of
/// a few passes. Requires a thread.
std::uint64_t read_bandwidth(std::uint32_t threads);
/// A worker's report but for what is its own: name, listen address, epoch, held stage.
/// `memory_bytes` 0: what is available. Figures are for `threads` threads.
protocol::WorkerReport probe_worker(std::uint64_t memory_bytes, std::uint32_t threads,
                                    const std::string& arithmetic_class,
                                    const std::string& device_name);

}  // namespace artel::runtime
