// SPDX-License-Identifier: Apache-2.0
// The dry run: what each part of a model needs, found by recording the part's graph over the index
// of the file alone. Planner, `inspect` and the loader read it; it is also the check that a file
// holds the model that its settings announce. Plain values; no weights are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gguf/gguf_index.hpp"
#include "graph/cost.hpp"
#include "models/architecture.hpp"
#include "models/stage_graph.hpp"

namespace artel::models {

struct TensorUse {
    std::string name;
    std::uint64_t bytes = 0;  // in the file
};

/// State of one part in one group.
struct StateUse {
    std::uint32_t group = 0;
    std::uint64_t bytes_per_token = 0;
    std::uint64_t bytes_per_sequence = 0;  // Slot groups
};

/// The input end, one layer, or the output end.
struct PartDescription {
    std::vector<TensorUse> tensors;  // in order of first use
    std::uint64_t weight_bytes = 0;  // their sum
    std::vector<StateUse> state;
    graph::Cost row_cost;       // of one row (that wants logits) without earlier positions
    graph::Cost position_cost;  // more for each earlier position that the row sees
    std::uint64_t scratch_bytes_per_row = 0;
};

struct ModelDescription {
    std::string architecture;
    ModelShape shape;
    graph::StateType state_type = graph::StateType::F16;
    PartDescription input;
    std::vector<PartDescription> layers;
    PartDescription output;
    std::vector<TensorUse> unused;  // tensors that no part needs; never loaded
    std::uint64_t unused_bytes = 0;
};

/// Errors: those of open_model and record_stage, for the first part that is wrong.
Result<ModelDescription> describe(const gguf::GgufIndex& index,
                                  graph::StateType state_type = graph::StateType::F16);

/// Bytes of the tensors of a stage, each once (a tied head shares the embedding). Requires parts
/// of that model.
std::uint64_t stage_weight_bytes(const ModelDescription& description, const StageParts& parts);

}  // namespace artel::models
