// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/attention.hpp"

#include <algorithm>
#include <cstring>

#include "graph/arithmetic.hpp"
#include "quant/half.hpp"

namespace artel::cpu {

namespace {

using graph::kPageTokens;

void store_element(std::byte* elements, graph::StateType type, std::uint64_t index, float value) {
    if (type == graph::StateType::F32) {
        std::memcpy(elements + index * sizeof(value), &value, sizeof(value));
    } else {
        const quant::F16Bits half = quant::f32_to_f16(value);
        std::memcpy(elements + index * sizeof(half), &half, sizeof(half));
    }
}

std::uint32_t page_of(const graph::PageTable& table, std::uint32_t block) {
    return table.pages[block - table.first_page];
}

void store_row(const LayerPages& layer, std::uint32_t page, std::uint32_t offset, const float* keys,
               const float* values) {
    const graph::LayerState& state = layer.layer;
    for (std::uint32_t head = 0; head < state.kv_head_count; ++head) {
        for (std::uint32_t c = 0; c < state.key_dim; ++c)
            store_element(layer.keys(page), layer.type, key_index(state, head, c, offset),
                          keys[head * state.key_dim + c]);
        for (std::uint32_t c = 0; c < state.value_dim && !state.values_in_keys; ++c)
            store_element(layer.values(page), layer.type, value_index(state, head, c, offset),
                          values[head * state.value_dim + c]);
    }
}

/// The first value_dim columns of a page's keys (columns, 64) as values (64, value_dim).
template <class Element>
void transpose_values(const std::byte* keys, std::size_t value_dim, float* room) {
    auto* target = reinterpret_cast<std::byte*>(room);
    for (std::size_t j = 0; j < kPageTokens; ++j)
        for (std::size_t c = 0; c < value_dim; ++c)
            std::memcpy(target + (j * value_dim + c) * sizeof(Element),
                        keys + (c * kPageTokens + j) * sizeof(Element), sizeof(Element));
}

/// The values of a page for one kv head: where they lie, or copied into `room`.
const std::byte* values_of(const LayerPages& layer, std::uint32_t page, std::uint32_t kv_head,
                           const std::byte* keys, float* room) {
    const graph::LayerState& state = layer.layer;
    if (!state.values_in_keys)
        return layer.values(page) +
               value_index(state, kv_head, 0, 0) * graph::state_type_bytes(layer.type);
    if (layer.type == graph::StateType::F16)
        transpose_values<quant::F16Bits>(keys, state.value_dim, room);
    else
        transpose_values<float>(keys, state.value_dim, room);
    return reinterpret_cast<const std::byte*>(room);
}

/// What the sum of weighted values is multiplied by.
float final_factor(const AttentionState& state, const float* sink) {
    if (sink == nullptr) return 1.0F / state.sum;
    const float top = *sink > state.top ? *sink : state.top;
    const float kept = graph::exact_exp(state.top - top);
    return kept / graph::fused_multiply_add(state.sum, kept, graph::exact_exp(*sink - top));
}

/// All query heads of one kv head, for one row.
void attend_row(const Kernels& kernels, const AttentionWork& work, const graph::PageTable& table,
                std::uint32_t position, std::uint32_t kv_head, const float* query, float* out,
                float* room) {
    const LayerPages& layer = *work.layer;
    const graph::LayerState& state = layer.layer;
    const std::uint32_t heads = work.head_count / state.kv_head_count;
    const std::uint32_t first = graph::first_visible(position, work.window);
    const std::uint64_t element = graph::state_type_bytes(layer.type);
    const AttendBlock attend =
        layer.type == graph::StateType::F16 ? kernels.attend_f16 : kernels.attend_f32;
    AttentionBlock block{};
    block.key_dim = state.key_dim;
    block.value_dim = state.value_dim;
    block.scale = work.scale;
    block.softcap = work.softcap;
    constexpr std::uint32_t kHeadsMax = 16;  // states kept at once; more heads take more passes
    for (std::uint32_t begin = 0; begin < heads; begin += kHeadsMax) {
        const std::uint32_t count = std::min(kHeadsMax, heads - begin);
        AttentionState states[kHeadsMax];
        for (std::uint32_t h = 0; h < count; ++h)
            states[h].vector = out + std::size_t{begin + h} * state.value_dim;
        for (std::uint32_t b = first / kPageTokens; b <= position / kPageTokens; ++b) {
            const std::uint32_t page = page_of(table, b);
            block.keys = layer.keys(page) + key_index(state, kv_head, 0, 0) * element;
            block.values = values_of(layer, page, kv_head, block.keys, room + state.value_dim);
            block.first = std::max(first, b * kPageTokens) - b * kPageTokens;
            block.end = std::min(position - b * kPageTokens + 1, kPageTokens);
            for (std::uint32_t h = 0; h < count; ++h)
                attend(block, query + std::size_t{begin + h} * state.key_dim, room, states[h]);
        }
        for (std::uint32_t h = 0; h < count; ++h)
            kernels.scale(states[h].vector,
                          final_factor(states[h], work.sinks == nullptr
                                                      ? nullptr
                                                      : work.sinks + kv_head * heads + begin + h),
                          state.value_dim, states[h].vector);
    }
}

}  // namespace

std::size_t attention_room(const graph::LayerState& layer) {
    const std::size_t vectors = layer.values_in_keys ? 1 + kPageTokens : 1;
    return vectors * layer.value_dim;
}

void store_state(ThreadPool& pool, const LayerPages& layer, const graph::Graph& graph,
                 const graph::RunInputs& inputs, const float* keys, const float* values) {
    const graph::LayerState& state = layer.layer;
    const auto rows = static_cast<std::uint32_t>(inputs.positions.size());
    pool.parallel_for(rows, [&](std::uint32_t row, std::uint32_t) {
        const std::uint32_t position = inputs.positions[row];
        const auto& table = inputs.table(graph, inputs.sequences[row], layer.group);
        store_row(layer, page_of(table, position / kPageTokens), position % kPageTokens,
                  keys + std::size_t{row} * state.kv_head_count * state.key_dim,
                  values + std::size_t{row} * state.kv_head_count * state.value_dim);
    });
}

void attention(const Kernels& kernels, ThreadPool& pool, const AttentionWork& work,
               const graph::Graph& graph, const graph::RunInputs& inputs) {
    const graph::LayerState& state = work.layer->layer;
    const auto rows = static_cast<std::uint32_t>(inputs.positions.size());
    const std::size_t heads = work.head_count / state.kv_head_count;
    // Pieces of one kv head follow each other, so that its pages stay in the cache.
    pool.parallel_for(rows * state.kv_head_count, [&](std::uint32_t piece, std::uint32_t thread) {
        const std::uint32_t row = piece % rows;
        const std::uint32_t kv_head = piece / rows;
        const std::size_t head = std::size_t{row} * work.head_count + kv_head * heads;
        attend_row(kernels, work, inputs.table(graph, inputs.sequences[row], work.layer->group),
                   inputs.positions[row], kv_head, work.query + head * state.key_dim,
                   work.out + head * state.value_dim, work.room + thread * work.room_stride);
    });
}

}  // namespace artel::cpu
