// SPDX-License-Identifier: Apache-2.0
// What an op or a graph costs: bytes moved and arithmetic done, for the planner, the probe and the
// benchmarks. Counts, not times; exact for dense models, caches not considered. Saturates instead
// of overflowing, since sizes come from files. Pure functions.
#pragma once

#include <cstdint>

#include "graph/graph.hpp"

namespace artel::graph {

struct Cost {
    std::uint64_t weight_bytes = 0;      // read
    std::uint64_t state_bytes = 0;       // read and written
    std::uint64_t activation_bytes = 0;  // read and written
    std::uint64_t flops = 0;             // a multiply-add is two
};

/// `context`: positions that each row sees before its own.
struct CostInputs {
    RowCounts rows;
    std::uint64_t context = 0;
};

Cost cost(const Graph& graph, const Op& op, const CostInputs& inputs);
Cost cost(const Graph& graph, const CostInputs& inputs);
/// Bytes of all weights that the graph needs, each once, as in the file.
std::uint64_t weight_bytes(const Graph& graph);
/// State of one position in all layers of `group` here (page bytes / 64, rounded up).
std::uint64_t state_bytes_per_token(const StateGroup& group);

}  // namespace artel::graph
