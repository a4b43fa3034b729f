// SPDX-License-Identifier: Apache-2.0
// Who holds what, as a table for people: the same for a plan that is only computed and for one that
// a cluster serves with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/planner.hpp"
#include "cluster/request.hpp"

namespace artel::cli {

struct PlanRow {
    std::string name;
    cluster::LayerRange layers;
    bool has_input = false;
    bool has_output = false;
    std::uint64_t weight_bytes = 0;
    std::uint64_t state_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint64_t memory_left = 0;  // of what the worker may use
};
struct PlanView {
    std::vector<PlanRow> rows;  // stages in the order of the pipe, then workers left out
    std::uint32_t context = 0;
    std::uint32_t parallel = 0;
    double decode_tokens_per_second = 0;  // predicted, one request
};

PlanView plan_view(const cluster::Health& health);
PlanView plan_view(const cluster::Plan& plan, const std::vector<cluster::WorkerProfile>& workers);

/// worker, layers, weights, state, memory left; a line on context and predicted speed. Ends with a
/// newline.
std::string plan_table(const PlanView& view);

}  // namespace artel::cli
