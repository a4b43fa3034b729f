// SPDX-License-Identifier: Apache-2.0
// MatMul over packed weights: rounds activations where the format asks for it, cuts the work by
// output columns, and finishes each output with the op's scale and bias. The cut does not show in
// the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/kernels.hpp"
#include "base/thread_pool.hpp"
#include "quant/formats.hpp"

namespace artel::cpu {

/// Rows [first_row, first_row + count) of a weight as layout() stores it.
struct WeightRows {
    const std::byte* packed = nullptr;  // of row 0
    quant::FormatId format = quant::FormatId::F32;
    bool is_packed = true;  // false: plain floats, one row
    std::size_t first_row = 0;
    std::size_t count = 0;
    std::size_t columns = 0;
};

struct MatMulWork {
    WeightRows weight;
    const float* x = nullptr;               // (rows, weight.columns)
    const RoundedPiece* rounded = nullptr;  // (rows, weight.columns / 32): integer formats
    std::size_t rows = 0;
    float* out = nullptr;          // (rows, weight.count)
    const float* scale = nullptr;  // one number, or null
    const float* bias = nullptr;   // (weight.count), or null
};

/// x (rows, columns) rounded into `pieces` (rows, columns / 32).
void round_rows(const Kernels& kernels, ThreadPool& pool, const float* x, std::size_t rows,
                std::size_t columns, RoundedPiece* pieces);

void matmul(const Kernels& kernels, ThreadPool& pool, const MatMulWork& work);

}  // namespace artel::cpu
