// SPDX-License-Identifier: Apache-2.0
// State groups and the layout of a page: what layers keep of a sequence between steps.
// A page is the state of kPageTokens consecutive positions in all layers of one group on one stage;
// its id is an index into the memory that the stage owns for the group (page i begins at byte
// i * page_bytes). The layout is the same for every backend, so that pages can be copied as bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace artel::graph {

constexpr std::uint32_t kPageTokens = 64;

enum class StateKind : std::uint8_t {
    Paged,     // every position
    Windowed,  // the last `window` positions
    Slot       // a fixed number of bytes a sequence (no op uses it yet)
};
enum class StateType : std::uint8_t { F16, F32 };

inline std::uint32_t state_type_bytes(StateType type) {
    return type == StateType::F16 ? 2 : 4;
}

/// A group as the whole model has it; its index is the same on every stage.
struct StateGroupSpec {
    StateKind kind = StateKind::Paged;
    std::uint32_t window = 0;  // Windowed only; 0 in a graph's other groups
};

/// What one layer keeps of one position.
struct LayerState {
    std::uint32_t kv_head_count = 0;
    std::uint32_t key_dim = 0;
    std::uint32_t value_dim = 0;
    /// Values are the first value_dim columns of the keys and have no place of their own (MLA).
    bool values_in_keys = false;
    friend bool operator==(const LayerState&, const LayerState&) = default;
};

/// A group as one graph has it: only the layers of this graph, perhaps none.
struct StateGroup {
    StateGroupSpec spec;
    StateType type = StateType::F16;
    std::vector<LayerState> layers;
};

/// Where a layer's keys and values lie in a page. Elements are of the group's type:
///
///   layer 0                                              | layer 1 ...
///   keys (kv_head, key_dim, 64) | values (kv_head, 64, value_dim) |
///
/// Keys are transposed: the 64 positions of one column are neighbours, so that a vector lane of the
/// score loop is a position; in the value loop a lane is a column. Each part begins at a multiple
/// of 64 bytes. Bytes of positions that were never written hold anything.
struct LayerPlace {
    std::uint64_t keys_offset = 0;    // bytes from the page's begin
    std::uint64_t values_offset = 0;  // bytes from the page's begin
};
struct PageLayout {
    std::uint64_t page_bytes = 0;
    std::vector<LayerPlace> layers;
};
/// Sizes were checked by GraphBuilder to fit in 64 bits.
PageLayout page_layout(const StateGroup& group);

/// Index of an element within a layer's keys or values of a page; offset = position % 64.
inline std::uint64_t key_index(const LayerState& layer, std::uint64_t head, std::uint64_t column,
                               std::uint64_t offset) {
    return (head * layer.key_dim + column) * kPageTokens + offset;
}
inline std::uint64_t value_index(const LayerState& layer, std::uint64_t head, std::uint64_t column,
                                 std::uint64_t offset) {
    return (head * kPageTokens + offset) * layer.value_dim + column;
}

/// The first position that a row at `position` sees.
inline std::uint32_t first_visible(std::uint32_t position, std::uint32_t window) {
    return window == 0 || position < window ? 0 : position - window + 1;
}

}  // namespace artel::graph
