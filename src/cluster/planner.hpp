// SPDX-License-Identifier: Apache-2.0
// The planner: (model, workers, wanted context and concurrency) -> which layers each worker holds,
// or how many bytes are missing. A pure function; all arithmetic is in integers, so every machine
// computes the same plan. Exact: of all ways to cut the layers into contiguous runs over the
// workers in their order, it finds one whose slowest stage is fastest among those that fit in
// memory. Rules:
// 1. A worker never gets more bytes than it may use, nor the workers of one machine more than it
// has.
// 2. Every layer is held once; the ends count where they are held; tied ends count once together.
// 3. Workers keep their order, except that those of one machine stand together (at the first's
//    place). A worker may be left out (a spare).
// 4. Every stage keeps the same pages, for `parallel` sequences of the full context.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/profile.hpp"

namespace artel::cluster {

struct PlanRequest {
    std::uint32_t context = 0;       // 0: the largest that fits, up to the model's
    std::uint32_t parallel = 1;      // sequences in flight
    std::uint32_t chunk_rows = 512;  // windowed groups keep the window and the chunks in flight
    std::vector<std::uint32_t> split =
        {};  // layers of each worker in order; empty: planner decides
};

struct PlanStage {
    NodeId node;
    std::string name;
    LayerRange layers;
    bool has_input = false;
    bool has_output = false;
    std::uint64_t weight_bytes = 0;
    std::uint64_t state_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint64_t memory_left = 0;  // of the worker's own limit
    std::uint64_t decode_ns = 0;    // one row through this stage, hop included
    std::uint64_t row_ns = 0;       // each further row of a large step
    std::uint64_t total_bytes() const { return weight_bytes + state_bytes + scratch_bytes; }
};
struct Plan {
    std::vector<PlanStage> stages;  // in the order of the pipe; never empty
    std::vector<NodeId> spares;
    std::uint32_t context = 0;
    std::uint32_t parallel = 0;
    std::vector<std::uint32_t> page_counts;   // one a state group
    double decode_tokens_per_second = 0;      // one request
    double decode_tokens_per_second_max = 0;  // many requests, one row each
};
struct PlanRefusal {
    std::uint64_t needed_bytes = 0;       // in all, at the wanted context
    std::uint64_t available_bytes = 0;    // in all
    std::uint64_t missing_bytes = 0;      // one more machine with so many bytes would do
    std::uint32_t context_that_fits = 0;  // 0: not even the shortest
    std::string message;                  // all of this in words, and which workers are unusable
};
using PlanOutcome = std::variant<Plan, PlanRefusal>;

PlanOutcome make_plan(const ModelProfile& model, const std::vector<WorkerProfile>& workers,
                      const PlanRequest& request);

/// Pages that one sequence of `context` positions can hold at once in a group.
std::uint32_t pages_per_sequence(const GroupProfile& group, std::uint32_t context,
                                 std::uint32_t chunk_rows, std::uint32_t stage_count);

/// How long a step of `rows` rows should take through all stages.
std::uint64_t predicted_step_ns(const Plan& plan, std::uint64_t rows);

}  // namespace artel::cluster
