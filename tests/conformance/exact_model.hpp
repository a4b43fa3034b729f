// SPDX-License-Identifier: Apache-2.0
// ExactModel: the rules of graph/arithmetic.hpp written once more, as plainly as they stand there
// and with the C library's fma, for one row or one head at a time. The CPU class must give these
// very bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/op.hpp"
#include "quant/formats.hpp"

namespace artel::conformance {

/// One output of MatMul before scale and bias: a row of the weight as in the file, a row of x.
float exact_dot(quant::FormatId format, std::span<const std::byte> weight_row,
                std::span<const float> x);

/// One run of RmsNorm.
std::vector<float> exact_rms_norm(std::span<const float> x, std::span<const float> weight,
                                  float epsilon);

/// Keys and values of one kv head, as read back from the pages: (positions, dim), from position 0.
struct ExactHead {
    std::vector<std::vector<float>> keys;
    std::vector<std::vector<float>> values;
};
/// Attention of one row and head at `position`.
std::vector<float> exact_attention(const graph::Attention& op, const ExactHead& head,
                                   std::span<const float> query, std::uint32_t position);

}  // namespace artel::conformance
