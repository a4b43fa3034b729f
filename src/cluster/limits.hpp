// SPDX-License-Identifier: Apache-2.0
// Everything in the cluster that has a limit or a deadline, in one place. Those of the wire are
// protocol/limits.hpp. Defaults are the product's; tests and options may set others.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace artel::cluster {

inline constexpr std::uint32_t kWorkersMax = 64;
inline constexpr std::uint32_t kStagesMax = 64;
inline constexpr std::uint32_t kStepsInFlightMax = 2 * kStagesMax;  // a worker's queue is no longer
inline constexpr std::uint32_t kStepsRememberedMax = 4096;  // that came after one not yet returned
inline constexpr std::uint32_t kDecodeTurnsMax =
    4;  // decode steps in a row while a prefill step waits
inline constexpr std::uint32_t kSequencesMax = 1024;   // in flight (--parallel)
inline constexpr std::uint32_t kChoicesMax = 128;      // answers of one request
inline constexpr std::uint32_t kWeightRangesMax = 32;  // asked for and not yet answered
inline constexpr std::uint32_t kEndTokensMax = 256;
// Whole logits of one request: in flight, on the last stage, and not yet taken by the client.
inline constexpr std::uint64_t kLogitsBytesMax = 256ULL << 20U;

/// What clients are told when a worker is lost: about the time of a restart from a warm disk.
inline constexpr Duration kRetryAfterLoss = std::chrono::seconds(5);

/// When a silent or slow part is given up. All settable.
struct Timeouts {
    Duration heartbeat_every = std::chrono::milliseconds(500);
    Duration heartbeat_lost = std::chrono::seconds(4);
    Duration reconnect_grace = std::chrono::seconds(1);
    Duration step_progress_min = std::chrono::seconds(5);
    std::uint32_t step_progress_factor = 10;  // times the predicted time
    Duration load_progress = std::chrono::seconds(60);
    Duration drain = std::chrono::seconds(30);
    Duration retry_plan = std::chrono::seconds(1);       // after a refusal that may pass
    Duration queue_unserved = std::chrono::seconds(5);   // a queued request waits for a lost worker
    Duration tick_max = std::chrono::milliseconds(200);  // a later tick counts as no more
};

struct Limits {
    std::uint32_t queued_requests = 256;
    std::uint32_t sequences = 4;                      // in flight together (--parallel)
    std::uint32_t chunk_rows = 512;                   // of prompt rows in one step
    std::uint32_t decode_rows = 256;                  // of decode rows in one step
    std::uint64_t queued_prompt_tokens = 16U << 20U;  // memory of the queue
    Timeouts timeouts;
};

}  // namespace artel::cluster
