// SPDX-License-Identifier: Apache-2.0
// The scheduler: which rows go into the next step. All such decisions are made here. Pure given its
// input: a view of the admitted sequences and of the steps in flight -> rows, or nothing to do now.
// Policy:
// 1. At most stages + 1 steps in flight, at most `stages` of them decode steps: that many keep
// every
//    stage of the pipe busy.
// 2. Sequences that decode are spread evenly over `stages` groups, since one large step would leave
//    all stages but one idle. A sequence is in at most one decode step (it needs its token first).
// 3. Decode steps go first; prefill fills the places left, in chunks, and the chunks of one prompt
//    follow each other down the pipe without waiting.
// 4. Who was served longest ago goes first (then the lower id), so no sequence waits for more than
//    one turn of every other.
#pragma once

#include <cstdint>
#include <vector>

#include "cluster/environment.hpp"

namespace artel::cluster {

struct SchedulerOptions {
    std::uint32_t stage_count = 1;
    std::uint32_t chunk_rows = 512;
    std::uint32_t decode_rows = 256;
};
/// What the scheduler sees of one admitted sequence.
struct SequenceView {
    SequenceId id;
    std::uint32_t prompt_left = 0;  // rows not yet sent; 0 and not decoding: waits for its chunks
    std::uint32_t rows_max = 0xFFFFFFFF;  // of one run; 0: its client has to take some first
    bool decodes = false;                 // the prompt has been read
    bool is_in_flight = false;            // a step with it has not come back
    StepNumber last_served;               // the last step that held it
};
struct InFlightView {
    std::uint32_t decode_steps = 0;
    std::uint32_t prefill_steps = 0;
};
struct ScheduledRun {
    SequenceId sequence;
    std::uint32_t rows = 0;
};
struct ScheduledStep {
    protocol::Lane lane = protocol::Lane::Decode;
    std::vector<ScheduledRun> runs;  // empty: nothing to do now
};

/// `sequences` ascending by id.
ScheduledStep next_step(const std::vector<SequenceView>& sequences, const InFlightView& in_flight,
                        const SchedulerOptions& options);

}  // namespace artel::cluster
