// SPDX-License-Identifier: Apache-2.0
// What a seed draws: a model of unlike layers, unlike machines, and requests over time. Pure.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "cluster/request.hpp"
#include "simulation/simulator.hpp"

namespace artel::simulation {

/// 1 to 64 layers of unlike sizes; full, windowed and slot state groups.
cluster::ModelProfile draw_model(Random& random);
/// 1 to 9 workers that together hold the model, most of them with little room to spare.
std::vector<NodeSpec> draw_workers(Random& random, const cluster::ModelProfile& model,
                                   const cluster::PlanRequest& plan);

struct TimedRequest {
    Duration at{0};
    cluster::Request request;
    std::optional<Duration> cancel_after;
};
/// Short and long prompts, several choices now and then, some cancelled, spread over `span`.
std::vector<TimedRequest> draw_requests(Random& random, const cluster::ModelProfile& model,
                                        std::uint32_t context, Duration span);

}  // namespace artel::simulation
