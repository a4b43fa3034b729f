// SPDX-License-Identifier: Apache-2.0
// Graph: an ordered list of ops and the tensors, weights, state groups, inputs and outputs they
// speak of. A value type, made by GraphBuilder alone and not changed afterwards; ops run in order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "graph/op.hpp"
#include "graph/state.hpp"
#include "graph/tensor.hpp"

namespace artel::graph {

struct Graph {
    std::vector<TensorRecord> tensors;  // Tensor::index
    std::vector<Weight> weights;        // in order of first use, each name once
    std::vector<StateGroup> groups;     // all groups of the model, also those without layers here
    std::vector<Op> ops;
    std::vector<Tensor> inputs;         // in the order of RunInputs::inputs
    std::vector<Tensor> outputs;        // in the order of RunInputs::outputs
    std::uint64_t vocabulary_size = 0;  // tokens of a step are below it; 0: the graph reads none

    const TensorRecord& record(Tensor tensor) const { return tensors[tensor.index]; }
    const Shape& shape(Tensor tensor) const { return tensors[tensor.index].shape; }
    /// The tensor of the file behind a weight handle.
    const Weight& weight(Tensor tensor) const { return weights[tensors[tensor.index].weight]; }
    const LayerState& layer_state(StateSlot slot) const {
        return groups[slot.group].layers[slot.layer];
    }
};

/// The pages of one sequence in one group: pages[i] holds positions
/// [(first_page + i) * 64, (first_page + i + 1) * 64).
struct PageTable {
    std::uint32_t first_page = 0;  // > 0 only where a window has passed the first pages
    std::span<const std::uint32_t> pages;
};

/// One step for a graph: borrowed views, valid until the backend's wait() returns.
/// The rows of one sequence have consecutive positions, in order; other rows may lie between them.
struct RunInputs {
    std::span<const std::uint32_t> positions;        // (R)
    std::span<const std::uint32_t> sequences;        // (R): index into the step's sequences
    std::span<const std::uint32_t> tokens;           // (R), or empty if the graph reads none
    std::span<const std::uint32_t> logit_rows;       // (L): ascending row numbers; may be empty
    std::span<const PageTable> page_tables;          // (sequences of the step, groups of the graph)
    std::span<const std::span<const float>> inputs;  // (rows, columns) for each of Graph::inputs
    std::span<const std::span<float>> outputs;       // (rows, columns) for each of Graph::outputs

    RowCounts rows() const { return {positions.size(), logit_rows.size()}; }
    const PageTable& table(const Graph& graph, std::uint32_t sequence, std::uint32_t group) const {
        return page_tables[sequence * graph.groups.size() + group];
    }
};

struct RunLimits {
    RowCounts rows;                    // the largest step
    std::uint32_t context = 0;         // positions are below it
    std::vector<std::uint32_t> pages;  // of each group: page ids are below it
};

/// THE check of a step, made once before any kernel: kernels believe everything it has passed.
/// Counts, tokens, positions, sequences, that each row's visible positions have pages, that no two
/// rows store at one place, sizes of inputs and outputs, that inputs are finite.
Error check_run_inputs(const Graph& graph, const RunLimits& limits, const RunInputs& inputs);

}  // namespace artel::graph
