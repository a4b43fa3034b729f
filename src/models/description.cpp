// SPDX-License-Identifier: Apache-2.0
// tidy: helper
#include "models/description.hpp"

#include <map>
#include <set>

#include "graph/memory_plan.hpp"

namespace artel::models {

namespace {

constexpr std::uint64_t kProbeRows = 64;  // scratch is linear in rows, exactly so in steps of 16

graph::Cost difference(const graph::Cost& a, const graph::Cost& b) {
    return {.weight_bytes = a.weight_bytes - b.weight_bytes,
            .state_bytes = a.state_bytes - b.state_bytes,
            .activation_bytes = a.activation_bytes - b.activation_bytes,
            .flops = a.flops - b.flops};
}

std::vector<StateUse> state_uses(const graph::Graph& graph) {
    std::vector<StateUse> uses;
    for (std::uint32_t group = 0; group < graph.groups.size(); ++group) {
        if (graph.groups[group].layers.empty()) continue;
        uses.push_back(
            {.group = group, .bytes_per_token = graph::state_bytes_per_token(graph.groups[group])});
    }
    return uses;
}

Result<PartDescription> describe_part(const Model& model, const graph::WeightIndex& weights,
                                      const StageParts& parts, graph::StateType state_type) {
    ARTEL_ASSIGN(const graph::Graph graph, record_stage(model, weights, parts, state_type));
    PartDescription part;
    for (const graph::Weight& weight : graph.weights)
        part.tensors.push_back({weight.name, weight.bytes});
    part.weight_bytes = graph::weight_bytes(graph);
    part.state = state_uses(graph);
    const graph::RowCounts one{.step = 1, .logits = 1};
    part.row_cost = graph::cost(graph, {.rows = one, .context = 0});
    part.position_cost = difference(graph::cost(graph, {.rows = one, .context = 1}), part.row_cost);
    ARTEL_ASSIGN(const graph::MemoryPlan plan, graph::plan_memory(graph, {kProbeRows, kProbeRows}));
    part.scratch_bytes_per_row = (plan.bytes + kProbeRows - 1) / kProbeRows;
    return part;
}

void find_unused(const gguf::GgufIndex& index, ModelDescription& description) {
    std::set<std::string_view> used;
    const auto add = [&](const PartDescription& part) {
        for (const TensorUse& tensor : part.tensors) used.insert(tensor.name);
    };
    add(description.input);
    for (const PartDescription& layer : description.layers) add(layer);
    add(description.output);
    for (const gguf::TensorInfo& tensor : index.tensors()) {
        if (used.contains(tensor.name)) continue;
        description.unused.push_back({tensor.name, tensor.bytes});
        description.unused_bytes += tensor.bytes;
    }
}

}  // namespace

Result<ModelDescription> describe(const gguf::GgufIndex& index, graph::StateType state_type) {
    ARTEL_ASSIGN(const Model model, open_model(index.metadata()));
    const IndexedWeights weights(index);
    ModelDescription description;
    description.architecture = model.architecture;
    description.shape = model.shape;
    description.state_type = state_type;
    const std::uint32_t layer_count = model.shape.layer_count;
    ARTEL_ASSIGN(
        description.input,
        describe_part(model, weights,
                      {.layers = {.first = 0, .count = 0}, .has_input = true, .has_output = false},
                      state_type));
    for (std::uint32_t i = 0; i < layer_count; ++i) {
        ARTEL_ASSIGN(PartDescription layer, describe_part(model, weights,
                                                          {.layers = {.first = i, .count = 1},
                                                           .has_input = false,
                                                           .has_output = false},
                                                          state_type));
        description.layers.push_back(std::move(layer));
    }
    ARTEL_ASSIGN(description.output, describe_part(model, weights,
                                                   {.layers = {.first = layer_count, .count = 0},
                                                    .has_input = false,
                                                    .has_output = true},
                                                   state_type));
    find_unused(index, description);
    return description;
}

std::uint64_t stage_weight_bytes(const ModelDescription& description, const StageParts& parts) {
    std::map<std::string_view, std::uint64_t> bytes;
    const auto add = [&](const PartDescription& part) {
        for (const TensorUse& tensor : part.tensors) bytes[tensor.name] = tensor.bytes;
    };
    if (parts.has_input) add(description.input);
    for (std::uint32_t i = parts.layers.first; i < parts.layers.end(); ++i)
        add(description.layers[i]);
    if (parts.has_output) add(description.output);
    std::uint64_t sum = 0;
    for (const auto& [name, count] : bytes) sum += count;
    return sum;
}

}  // namespace artel::models
