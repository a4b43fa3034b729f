// SPDX-License-Identifier: Apache-2.0
#include "graph/cost.hpp"

#include <algorithm>

#include "base/byte_count.hpp"

namespace artel::graph {

namespace {

constexpr std::uint64_t kMost = ~std::uint64_t{0};

std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
    std::uint64_t result = 1;
    for (const std::uint64_t factor : factors)
        result = checked_multiply(result, factor).value_or(kMost);
    return result;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return checked_add(a, b).value_or(kMost);
}

std::uint64_t elements(const Graph& graph, Tensor x, const CostInputs& inputs) {
    const Shape& shape = graph.shape(x);
    return product({row_count(shape, inputs.rows), shape.columns});
}

/// Of the rows that the handle names, as in the file.
std::uint64_t used_bytes(const Graph& graph, Tensor weight) {
    const Weight& whole = graph.weight(weight);
    return product({whole.bytes / whole.rows, graph.shape(weight).rows});
}

/// What every op moves: its computed inputs and its output.
std::uint64_t moved_bytes(const Graph& graph, const Op& op, const CostInputs& inputs) {
    const OpTensors used = op_tensors(op);
    std::uint64_t bytes = 0;
    for (const Tensor read : used.reads)
        if (read.is_valid() && graph.record(read).kind != TensorKind::Weight)
            bytes = sum(bytes, product({sizeof(float), elements(graph, read, inputs)}));
    if (used.writes.is_valid())
        bytes = sum(bytes, product({sizeof(float), elements(graph, used.writes, inputs)}));
    return bytes;
}

std::uint64_t row_state_elements(const LayerState& layer) {
    const std::uint64_t values = layer.values_in_keys ? 0 : layer.value_dim;
    return layer.kv_head_count * (layer.key_dim + values);
}

struct OpCost {
    const Graph& graph;
    const CostInputs& inputs;

    Cost per_element(Tensor out, std::uint64_t flops) const {
        return {.flops = product({flops, elements(graph, out, inputs)})};
    }
    Cost operator()(const EmbedRows& op) const {
        const Weight& whole = graph.weight(op.weight);
        return {.weight_bytes = product({whole.bytes / whole.rows, inputs.rows.step})};
    }
    Cost operator()(const RmsNorm& op) const {
        Cost cost = per_element(op.out, 4);
        cost.weight_bytes = used_bytes(graph, op.weight);
        return cost;
    }
    Cost operator()(const MatMul& op) const {
        const std::uint64_t rows = row_count(graph.shape(op.x), inputs.rows);
        const Shape& matrix = graph.shape(op.weight);
        return {.weight_bytes = rows == 0 ? 0 : used_bytes(graph, op.weight),
                .flops = product({2, rows, matrix.rows, matrix.columns})};
    }
    Cost operator()(const Rope& op) const { return per_element(op.out, 3); }
    Cost operator()(const StoreState& op) const {
        const std::uint64_t type_bytes = state_type_bytes(graph.groups[op.slot.group].type);
        return {.state_bytes = product({inputs.rows.step, type_bytes,
                                        row_state_elements(graph.layer_state(op.slot))})};
    }
    Cost operator()(const Attention& op) const {
        const LayerState& layer = graph.layer_state(op.slot);
        const std::uint64_t type_bytes = state_type_bytes(graph.groups[op.slot.group].type);
        std::uint64_t seen = sum(inputs.context, 1);
        if (op.window > 0) seen = std::min<std::uint64_t>(seen, op.window);
        return {
            .state_bytes = product({inputs.rows.step, seen, type_bytes, row_state_elements(layer)}),
            .flops = product({2, inputs.rows.step, seen, op.head_count,
                              std::uint64_t{layer.key_dim} + layer.value_dim})};
    }
    Cost operator()(const Add& op) const { return per_element(op.out, 1); }
    Cost operator()(const Multiply& op) const { return per_element(op.out, 1); }
    Cost operator()(const Scale& op) const { return per_element(op.out, 1); }
    Cost operator()(const GatedActivation& op) const { return per_element(op.out, 20); }
    Cost operator()(const SelectRows&) const { return {}; }
    Cost operator()(const SoftCap& op) const { return per_element(op.out, 20); }
    Cost operator()(const LayerNorm& op) const {
        Cost cost = per_element(op.out, 7);
        cost.weight_bytes = used_bytes(graph, op.weight);
        if (op.bias) cost.weight_bytes = sum(cost.weight_bytes, used_bytes(graph, *op.bias));
        return cost;
    }
    Cost operator()(const Activate& op) const { return per_element(op.out, 20); }
    Cost operator()(const HeadMatMul& op) const {
        const Shape& matrix = graph.shape(op.weight);
        return {.weight_bytes = inputs.rows.step == 0 ? 0 : used_bytes(graph, op.weight),
                .flops = product({2, inputs.rows.step, matrix.rows, matrix.columns})};
    }
    Cost operator()(const SliceHeads&) const { return {}; }
    Cost operator()(const JoinHeads&) const { return {}; }
    /// Of experts, as many as rows can have chosen: all different ones for few rows, all for many.
    Cost operator()(const RoutedExperts& op) const {
        const std::uint64_t experts = op.routing.expert_count;
        const std::uint64_t rows = inputs.rows.step;
        const std::uint64_t chosen = product({rows, op.routing.used_count});
        const std::uint64_t width = graph.shape(op.x).columns;
        const std::uint64_t hidden = graph.shape(op.down).columns;
        std::uint64_t bytes = 0;
        for (const std::optional<Tensor>& weight :
             {std::optional(op.gate), std::optional(op.up), std::optional(op.down), op.gate_bias,
              op.up_bias, op.down_bias})
            if (weight) bytes = sum(bytes, used_bytes(graph, *weight));
        return {
            .weight_bytes = product({bytes / experts, std::min(experts, chosen)}),
            .flops = product({chosen, sum(product({6, width, hidden}), 20 * hidden + 2 * width)})};
    }
};

}  // namespace

Cost cost(const Graph& graph, const Op& op, const CostInputs& inputs) {
    Cost result = std::visit(OpCost{graph, inputs}, op);
    result.activation_bytes = moved_bytes(graph, op, inputs);
    return result;
}

Cost cost(const Graph& graph, const CostInputs& inputs) {
    Cost total;
    for (const Op& op : graph.ops) {
        const Cost one = cost(graph, op, inputs);
        total.weight_bytes = sum(total.weight_bytes, one.weight_bytes);
        total.state_bytes = sum(total.state_bytes, one.state_bytes);
        total.activation_bytes = sum(total.activation_bytes, one.activation_bytes);
        total.flops = sum(total.flops, one.flops);
    }
    return total;
}

std::uint64_t weight_bytes(const Graph& graph) {
    std::uint64_t bytes = 0;
    for (const Weight& weight : graph.weights) bytes = sum(bytes, weight.bytes);
    return bytes;
}

std::uint64_t state_bytes_per_token(const StateGroup& group) {
    return (page_layout(group).page_bytes + kPageTokens - 1) / kPageTokens;
}

}  // namespace artel::graph
