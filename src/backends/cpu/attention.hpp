// SPDX-License-Identifier: Apache-2.0
// StoreState and Attention over the pages of one layer. Attention is cut by (row, kv head); a page
// is read for all query heads of its kv head.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels.hpp"
#include "base/thread_pool.hpp"
#include "graph/graph.hpp"

namespace artel::cpu {

/// One layer's part of a state group's memory.
struct LayerPages {
    std::byte* pages = nullptr;  // of the group: page i at i * page_bytes
    std::uint64_t page_bytes = 0;
    graph::LayerPlace place;
    graph::LayerState layer;
    graph::StateType type = graph::StateType::F16;
    std::uint32_t group = 0;

    std::byte* keys(std::uint32_t page) const {
        return pages + page * page_bytes + place.keys_offset;
    }
    std::byte* values(std::uint32_t page) const {
        return pages + page * page_bytes + place.values_offset;
    }
};

/// keys (R, kv_head_count * key_dim), values (R, kv_head_count * value_dim).
void store_state(ThreadPool& pool, const LayerPages& layer, const graph::Graph& graph,
                 const graph::RunInputs& inputs, const float* keys, const float* values);

/// Floats that one thread needs: a block's vector, and a page's values where they are kept as
/// columns of the keys, which the value loop wants row by row.
std::size_t attention_room(const graph::LayerState& layer);

struct AttentionWork {
    const LayerPages* layer = nullptr;
    const float* query = nullptr;  // (R, head_count * key_dim)
    const float* sinks = nullptr;  // (head_count), or null
    float* out = nullptr;          // (R, head_count * value_dim)
    float* room = nullptr;         // (threads, room_stride)
    std::size_t room_stride = 0;   // at least attention_room() of the layer
    std::uint32_t head_count = 0;
    std::uint32_t window = 0;
    float scale = 1;
    float softcap = 0;
};
void attention(const Kernels& kernels, ThreadPool& pool, const AttentionWork& work,
               const graph::Graph& graph, const graph::RunInputs& inputs);

}  // namespace artel::cpu
