// SPDX-License-Identifier: Apache-2.0
// tidy: helper
#include "models/stage_graph.hpp"

namespace artel::models {

namespace {

Error check_parts(const ModelShape& shape, const StageParts& parts) {
    const auto [first, count] = parts.layers;
    if (first > shape.layer_count || count > shape.layer_count - first)
        return invalid_argument("layers [{}, {}) of a model of {} layers", first,
                                std::uint64_t{first} + count, shape.layer_count);
    if (count == 0 && !parts.has_input && !parts.has_output)
        return invalid_argument("a stage without layers and without an end");
    if (parts.has_input && count != 0 && first != 0)
        return invalid_argument("a stage with the input end begins at layer {}, expected 0", first);
    if (parts.has_output && count != 0 && parts.layers.end() != shape.layer_count)
        return invalid_argument("a stage with the output end stops at layer {}, expected {}",
                                parts.layers.end(), shape.layer_count);
    if (parts.has_input && parts.has_output && count != shape.layer_count)
        return invalid_argument("a stage with both ends has {} layers, expected all {}", count,
                                shape.layer_count);
    return ok();
}

}  // namespace

std::optional<graph::WeightEntry> IndexedWeights::find(std::string_view name) const {
    const gguf::TensorInfo* tensor = index_.find_tensor(name);
    if (tensor == nullptr) return std::nullopt;
    return graph::WeightEntry{
        .gguf_type = tensor->type_id, .rows = tensor->rows(), .columns = tensor->columns()};
}

Result<graph::Graph> record_stage(const Model& model, const graph::WeightIndex& weights,
                                  const StageParts& parts, graph::StateType state_type) {
    ARTEL_TRY(check_parts(model.shape, parts));
    graph::GraphBuilder g(weights, model.shape.state_groups, state_type);
    graph::Tensor x = parts.has_input ? model.input(g) : g.input(model.shape.width);  // (R, width)
    for (std::uint32_t i = parts.layers.first; i < parts.layers.end() && !g.has_failed(); ++i)
        x = model.layer(g, x, i);                  // (R, width)
    if (parts.has_output) x = model.output(g, x);  // (L, vocabulary)
    g.output(x);
    return g.finish();
}

}  // namespace artel::models
