// SPDX-License-Identifier: Apache-2.0
// MemoryPlan: where each scratch tensor lies in one buffer. A tensor lives from the op that writes
// it to the last that reads it; two that live at once never overlap. Largest first, each at the
// lowest place that fits (greedy by size), so the plan is the same everywhere. Pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "graph/graph.hpp"

namespace artel::graph {

constexpr std::uint64_t kScratchAlignment = 64;

struct MemoryPlan {
    static constexpr std::uint64_t kNoPlace = ~std::uint64_t{0};
    std::vector<std::uint64_t> offsets;  // bytes, by Tensor::index; kNoPlace unless Scratch
    std::uint64_t bytes = 0;             // of the buffer
};

/// For steps of at most `rows`. Error: sizes beyond 64 bits.
Result<MemoryPlan> plan_memory(const Graph& graph, const RowCounts& rows);

}  // namespace artel::graph
