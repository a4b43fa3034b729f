// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/experts.hpp"

#include <algorithm>

#include "backends/cpu/packed_format.hpp"
#include "backends/cpu/packed_weights.hpp"
#include "graph/routing.hpp"

namespace artel::cpu {

namespace {

/// Every row's experts, and every expert's rows.
void choose(ThreadPool& pool, const ExpertsWork& work, ExpertsRoom& room) {
    const graph::Routing& routing = work.op->routing;
    const std::size_t experts = routing.expert_count;
    const std::size_t used = routing.used_count;
    room.scores.resize(pool.thread_count() * 2 * experts);
    room.shares.resize(work.rows * used);
    pool.parallel_for(
        static_cast<std::uint32_t>(work.rows), [&](std::uint32_t row, std::uint32_t thread) {
            graph::choose_experts(routing, work.logits + row * experts, work.selection_bias,
                                  room.scores.data() + thread * 2 * experts,
                                  room.shares.data() + row * used);
        });
    room.first.assign(experts + 1, 0);
    for (const graph::ExpertShare& share : room.shares) ++room.first[share.expert + 1];
    for (std::size_t e = 0; e < experts; ++e) room.first[e + 1] += room.first[e];
    room.entries.resize(room.shares.size());
    std::vector<std::uint32_t> next(room.first.begin(), room.first.end() - 1);
    for (std::size_t i = 0; i < room.shares.size(); ++i) {
        const graph::ExpertShare& share = room.shares[i];
        room.entries[next[share.expert]++] = {static_cast<std::uint32_t>(i / used), share.weight};
    }
}

/// Row `expert` of a bias, or null where there is none.
const float* bias_of(const WeightRows& bias, std::size_t expert, std::vector<float>& room) {
    if (bias.packed == nullptr) return nullptr;
    if (!bias.is_packed) return reinterpret_cast<const float*>(bias.packed);
    room.resize(std::max(room.size(), bias.columns));
    decode_packed_row(bias.format, bias.packed, bias.first_row + expert, bias.columns, room.data());
    return room.data();
}

struct ExpertMatMul {
    const WeightRows* weights = nullptr;  // of all experts
    const WeightRows* biases = nullptr;
    std::size_t expert = 0;
    const float* x = nullptr;  // (rows, columns)
    std::size_t rows = 0;
    float* out = nullptr;  // (rows, rows of one expert's weight)
};

/// `pieces` already hold x where `is_rounded`.
void multiply(const Kernels& kernels, ThreadPool& pool, const ExpertMatMul& one,
              std::size_t experts, RoundedPiece* pieces, bool is_rounded, ExpertsRoom& room) {
    const WeightRows& all = *one.weights;
    MatMulWork work;
    work.weight = all;
    work.weight.count = all.count / experts;
    work.weight.first_row = all.first_row + one.expert * work.weight.count;
    work.x = one.x;
    work.rows = one.rows;
    work.out = one.out;
    work.bias = bias_of(*one.biases, one.expert, room.bias);
    if (quant::format_traits(all.format).block_elements > 1) {
        if (!is_rounded) round_rows(kernels, pool, one.x, one.rows, all.columns, pieces);
        work.rounded = pieces;
    }
    matmul(kernels, pool, work);
}

/// Adds what one expert makes of its rows to theirs.
void add_expert(const Kernels& kernels, ThreadPool& pool, const ExpertsWork& work,
                std::size_t expert, ExpertsRoom& room) {
    const ExpertsRoom::Entry* entries = room.entries.data() + room.first[expert];
    const std::size_t rows = room.first[expert + 1] - room.first[expert];
    const std::size_t experts = work.op->routing.expert_count;
    const std::size_t width = work.gate.columns;
    const std::size_t hidden = work.down.columns;
    float* x = work.room;                 // (rows, width), later what the expert gives
    float* gate = x + work.rows * width;  // (rows, hidden)
    float* up = gate + work.rows * hidden;
    const auto each_row = [&](const auto& body) {
        pool.parallel_for(static_cast<std::uint32_t>(rows),
                          [&](std::uint32_t i, std::uint32_t) { body(std::size_t{i}); });
    };
    each_row(
        [&](std::size_t i) { std::copy_n(work.x + entries[i].row * width, width, x + i * width); });
    const bool shares_pieces = quant::format_traits(work.gate.format).block_elements > 1;
    multiply(kernels, pool, {&work.gate, &work.gate_bias, expert, x, rows, gate}, experts,
             work.pieces, false, room);
    multiply(kernels, pool, {&work.up, &work.up_bias, expert, x, rows, up}, experts, work.pieces,
             shares_pieces, room);
    const auto combine = gate_kernel(kernels, work.op->kind);
    each_row([&](std::size_t i) {
        combine(gate + i * hidden, up + i * hidden, hidden, gate + i * hidden);
    });
    multiply(kernels, pool, {&work.down, &work.down_bias, expert, gate, rows, x}, experts,
             work.pieces, false, room);
    each_row([&](std::size_t i) {
        kernels.add_scaled(x + i * width, entries[i].weight, width,
                           work.out + entries[i].row * width);
    });
}

}  // namespace

GateKernel gate_kernel(const Kernels& kernels, graph::GateKind kind) {
    switch (kind) {
        case graph::GateKind::Silu:
            return kernels.silu_gate;
        case graph::GateKind::GeluTanh:
            return kernels.gelu_gate;
        case graph::GateKind::ClampedSwish:
            return kernels.clamped_gate;
    }
    __builtin_unreachable();
}

void routed_experts(const Kernels& kernels, ThreadPool& pool, const ExpertsWork& work,
                    ExpertsRoom& room) {
    choose(pool, work, room);
    std::fill_n(work.out, work.rows * work.gate.columns, 0.0F);
    for (std::size_t expert = 0; expert < work.op->routing.expert_count; ++expert)
        if (room.first[expert + 1] > room.first[expert])
            add_expert(kernels, pool, work, expert, room);
}

}  // namespace artel::cpu
