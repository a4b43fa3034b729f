// SPDX-License-Identifier: Apache-2.0
// Tensor: a handle to one value of one graph, and what a graph knows of it (TensorRecord).
// Every value is dense, row-major float32, (rows, columns); only weights have formats. The column
// count is fixed; the row count is fixed (weights) or one of two numbers known at run time: R, the
// rows of the step, or L, those rows of it that want logits. So a recorded graph serves every step.
// There are no strided views: a part of a fused weight is a weight of its own, rows [first, first +
// count) of the tensor in the file (GraphBuilder::weight_rows).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quant/formats.hpp"

namespace artel::graph {

/// Index into Graph::tensors. Meaningless in any other graph.
struct Tensor {
    std::uint32_t index = kNone;
    static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
    bool is_valid() const { return index != kNone; }
    friend bool operator==(const Tensor&, const Tensor&) = default;
};

enum class TensorKind : std::uint8_t {
    Input,    // given to run(), e.g. activations of the stage before
    Weight,   // lives in memory of the backend, bound by prepare()
    Scratch,  // between two ops; its place is the memory plan's business
    Output    // written by one op straight into what run() was given
};

enum class RowKind : std::uint8_t {
    Fixed,  // Shape::rows
    Step,   // R: the rows of the step
    Logits  // L: the rows that want logits
};

struct Shape {
    RowKind row_kind = RowKind::Fixed;
    std::uint64_t rows = 1;  // Fixed only
    std::uint64_t columns = 0;
    friend bool operator==(const Shape&, const Shape&) = default;
};

/// R and L of a step, or the largest that a prepared graph must serve.
struct RowCounts {
    std::uint64_t step = 0;
    std::uint64_t logits = 0;
};

inline std::uint64_t row_count(const Shape& shape, const RowCounts& counts) {
    if (shape.row_kind == RowKind::Step) return counts.step;
    return shape.row_kind == RowKind::Logits ? counts.logits : shape.rows;
}

/// "(R, 576)", "(49152, 576)": for messages.
std::string to_string(const Shape& shape);

/// A tensor of the file that the graph needs, whole, in the file's format. A vector has one row.
struct Weight {
    std::string name;  // exactly as in the file
    quant::FormatId format = quant::FormatId::F32;
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    std::uint64_t bytes = 0;  // in the file
};

struct TensorRecord {
    TensorKind kind = TensorKind::Scratch;
    Shape shape;
    std::uint32_t weight = 0;     // Weight only: index into Graph::weights
    std::uint64_t first_row = 0;  // Weight only: of the tensor in the file
};

}  // namespace artel::graph
