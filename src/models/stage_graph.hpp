// SPDX-License-Identifier: Apache-2.0
// From a model and a file's index to the graph of one stage: any run of layers, with or without the
// ends. The same functions record a whole model, one worker's share, or one layer for a dry run.
// Reads no weights. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "gguf/gguf_index.hpp"
#include "graph/graph_builder.hpp"
#include "models/architecture.hpp"

namespace artel::models {

struct LayerRange {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t end() const { return first + count; }
    friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

/// What a stage holds: layers, and perhaps an end (or only an end).
struct StageParts {
    LayerRange layers;
    bool has_input = false;   // tokens -> activations
    bool has_output = false;  // activations -> logits
    friend bool operator==(const StageParts&, const StageParts&) = default;
};

/// All of a model.
inline StageParts whole_model(const Model& model) {
    return {.layers = {.first = 0, .count = model.shape.layer_count},
            .has_input = true,
            .has_output = true};
}

/// The tensors of a GGUF index as the graph builder asks for them. Borrows the index.
class IndexedWeights final : public graph::WeightIndex {
  public:
    explicit IndexedWeights(const gguf::GgufIndex& index) : index_(index) {}
    std::optional<graph::WeightEntry> find(std::string_view name) const override;

  private:
    const gguf::GgufIndex& index_;
};

/// The graph of a stage: one input, activations (R, width), unless it has the input end; one
/// output, activations (R, width) or logits (L, vocabulary). Errors: InvalidArgument (layers that
/// the model does not have, no parts at all, tensors that are absent or of the wrong shape),
/// Unimplemented (a tensor's format).
Result<graph::Graph> record_stage(const Model& model, const graph::WeightIndex& weights,
                                  const StageParts& parts, graph::StateType state_type);

}  // namespace artel::models
