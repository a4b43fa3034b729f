// SPDX-License-Identifier: Apache-2.0
#include "graph/state.hpp"

namespace artel::graph {

namespace {

constexpr std::uint64_t kPartAlignment = 64;

std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
}

}  // namespace

PageLayout page_layout(const StateGroup& group) {
    PageLayout layout;
    const std::uint64_t element_bytes = state_type_bytes(group.type);
    for (const LayerState& layer : group.layers) {
        const std::uint64_t column_bytes = element_bytes * kPageTokens * layer.kv_head_count;
        LayerPlace place;
        place.keys_offset = layout.page_bytes;
        place.values_offset = aligned(place.keys_offset + column_bytes * layer.key_dim);
        layout.page_bytes = place.values_offset;
        if (layer.values_in_keys)
            place.values_offset = place.keys_offset;
        else
            layout.page_bytes = aligned(place.values_offset + column_bytes * layer.value_dim);
        layout.layers.push_back(place);
    }
    return layout;
}

}  // namespace artel::graph
