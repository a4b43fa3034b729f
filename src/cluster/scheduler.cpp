// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler.hpp"

#include <algorithm>
#include <tuple>

namespace artel::cluster {

namespace {

using protocol::Lane;

std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) {
    return (a + b - 1) / b;
}

/// Served longest ago first; never served (step 0) before all others.
void sort_by_turn(std::vector<SequenceView>& sequences) {
    std::sort(sequences.begin(), sequences.end(), [](const auto& a, const auto& b) {
        return std::tie(a.last_served, a.id) < std::tie(b.last_served, b.id);
    });
}

/// Decoding sequences are cut into as many even groups as the pipe has stages.
std::uint32_t decode_group_rows(std::uint32_t decoding, const SchedulerOptions& options) {
    return std::min(divide_up(decoding, options.stage_count), options.decode_rows);
}

ScheduledStep decode_step(std::vector<SequenceView> ready, std::uint32_t rows) {
    sort_by_turn(ready);
    ScheduledStep step{Lane::Decode, {}};
    for (const SequenceView& sequence : ready) {
        if (step.runs.size() == rows) break;
        step.runs.push_back({sequence.id, 1});
    }
    return step;
}

ScheduledStep prefill_step(std::vector<SequenceView> prompts, std::uint32_t rows) {
    sort_by_turn(prompts);
    ScheduledStep step{Lane::Prefill, {}};
    for (const SequenceView& sequence : prompts) {
        if (rows == 0) break;
        const std::uint32_t taken = std::min({rows, sequence.prompt_left, sequence.rows_max});
        step.runs.push_back({sequence.id, taken});
        rows -= taken;
    }
    return step;
}

}  // namespace

ScheduledStep next_step(const std::vector<SequenceView>& sequences, const InFlightView& in_flight,
                        const SchedulerOptions& options) {
    std::vector<SequenceView> ready;    // to decode now
    std::vector<SequenceView> prompts;  // with rows left to read
    std::uint32_t decoding = 0;
    for (const SequenceView& sequence : sequences) {
        if (sequence.decodes) ++decoding;
        if (sequence.decodes && !sequence.is_in_flight) ready.push_back(sequence);
        if (sequence.prompt_left > 0 && sequence.rows_max > 0) prompts.push_back(sequence);
    }
    if (in_flight.decode_steps + in_flight.prefill_steps > options.stage_count) return {};
    if (!ready.empty() && in_flight.decode_steps < options.stage_count)
        return decode_step(std::move(ready), decode_group_rows(decoding, options));
    // Prefill leaves the places that decode steps will want again when they come back.
    const std::uint32_t decode_groups = std::min(decoding, options.stage_count);
    if (!prompts.empty() && in_flight.prefill_steps + decode_groups <= options.stage_count)
        return prefill_step(std::move(prompts), options.chunk_rows);
    return {};
}

}  // namespace artel::cluster
