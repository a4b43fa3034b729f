// SPDX-License-Identifier: Apache-2.0
// RoutedExperts on packed weights: rows choose their experts, and each expert that was chosen is
// read once, for all of its rows together; the bytes of others are not touched. A row's result does
// not show who else chose the same expert: its experts are added in ascending order, and matmul is
// the same for one row or many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/kernels.hpp"
#include "backends/cpu/matmul.hpp"
#include "base/thread_pool.hpp"
#include "graph/op.hpp"

namespace artel::cpu {

/// What a step keeps on the way; grows to its size in the first steps.
struct ExpertsRoom {
    std::vector<float> scores;               // (threads, 2 * experts)
    std::vector<graph::ExpertShare> shares;  // (rows, used)
    std::vector<std::uint32_t> first;        // (experts + 1): of each expert's entries
    struct Entry {
        std::uint32_t row;
        float weight;
    };
    std::vector<Entry> entries;  // (rows * used), by expert, rows ascending
    std::vector<float> bias;     // of one expert
};

struct ExpertsWork {
    const graph::RoutedExperts* op = nullptr;
    const float* x = nullptr;               // (rows, width)
    const float* logits = nullptr;          // (rows, experts)
    const float* selection_bias = nullptr;  // (experts), or null
    WeightRows gate;                        // (experts * hidden, width)
    WeightRows up;                          // (experts * hidden, width)
    WeightRows down;                        // (experts * width, hidden)
    WeightRows gate_bias;                   // (experts, hidden), or without memory
    WeightRows up_bias;                     // (experts, hidden), or without memory
    WeightRows down_bias;                   // (experts, width), or without memory
    float* room = nullptr;                  // (rows, width + 2 * hidden)
    RoundedPiece* pieces = nullptr;         // (rows, max(width, hidden) / 32)
    float* out = nullptr;                   // (rows, width)
    std::size_t rows = 0;
};

using GateKernel = void (*)(const float* gate, const float* up, std::size_t count, float* out);
GateKernel gate_kernel(const Kernels& kernels, graph::GateKind kind);

void routed_experts(const Kernels& kernels, ThreadPool& pool, const ExpertsWork& work,
                    ExpertsRoom& room);

}  // namespace artel::cpu
