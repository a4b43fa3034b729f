// SPDX-License-Identifier: Apache-2.0
// The ops of the reference backend, one function each. Plain loops over one step's values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace artel::reference {

/// What the ops of one step read and write.
struct StepValues {
    const graph::Graph& graph;
    const graph::RunInputs& inputs;
    std::span<const std::span<const std::byte>> weights;  // of each Graph::weights, as in the file
    std::span<const std::span<std::byte>> state;          // of each group: its pages
    std::vector<std::span<float>> values;                 // by Tensor::index; (rows, columns)
    std::vector<std::span<const float>> read_only;        // the same, and inputs

    std::uint64_t rows(graph::Tensor x) const {
        return graph::row_count(graph.shape(x), inputs.rows());
    }
    std::uint64_t columns(graph::Tensor x) const { return graph.shape(x).columns; }
    std::span<const float> row(graph::Tensor x, std::uint64_t r) const {
        return read_only[x.index].subspan(r * columns(x), columns(x));
    }
    std::span<float> row(graph::Tensor x, std::uint64_t r) {
        return values[x.index].subspan(r * columns(x), columns(x));
    }
    /// Row `r` of a weight handle, decoded.
    std::vector<float> weight_row(graph::Tensor weight, std::uint64_t r) const;
};

void compute(const graph::EmbedRows& op, StepValues& step);
void compute(const graph::RmsNorm& op, StepValues& step);
void compute(const graph::MatMul& op, StepValues& step);
void compute(const graph::Rope& op, StepValues& step);
void compute(const graph::StoreState& op, StepValues& step);
void compute(const graph::Attention& op, StepValues& step);
void compute(const graph::Add& op, StepValues& step);
void compute(const graph::Multiply& op, StepValues& step);
void compute(const graph::Scale& op, StepValues& step);
void compute(const graph::GatedActivation& op, StepValues& step);
void compute(const graph::SelectRows& op, StepValues& step);
void compute(const graph::SoftCap& op, StepValues& step);
void compute(const graph::LayerNorm& op, StepValues& step);
void compute(const graph::Activate& op, StepValues& step);
void compute(const graph::RoutedExperts& op, StepValues& step);
void compute(const graph::HeadMatMul& op, StepValues& step);
void compute(const graph::SliceHeads& op, StepValues& step);
void compute(const graph::JoinHeads& op, StepValues& step);

}  // namespace artel::reference
