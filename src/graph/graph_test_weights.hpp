// SPDX-License-Identifier: Apache-2.0
// For tests of graph/: a file index that holds what it is told.
#pragma once

#include <map>
#include <string>

#include "graph/graph_builder.hpp"

namespace artel::graph {

struct IndexForTest final : WeightIndex {
    std::map<std::string, WeightEntry, std::less<>> entries;
    std::optional<WeightEntry> find(std::string_view name) const override {
        const auto entry = entries.find(name);
        return entry == entries.end() ? std::nullopt : std::optional(entry->second);
    }
    void add(const std::string& name, quant::FormatId format, std::uint64_t rows,
             std::uint64_t columns) {
        entries[name] = {quant::format_traits(format).gguf_id, rows, columns};
    }
};

/// A layer as llama has it: 4 heads of 8, 2 kv heads; 32 columns; "norm" (F32), "q" (Q8_0) ...
inline IndexForTest small_layer_index() {
    using quant::FormatId;
    IndexForTest index;
    index.add("norm", FormatId::F32, 1, 32);
    index.add("q", FormatId::Q8_0, 32, 32);
    index.add("k", FormatId::Q4_0, 16, 32);
    index.add("v", FormatId::F16, 16, 32);
    index.add("gate", FormatId::Q4_1, 64, 32);
    index.add("up", FormatId::Q5_0, 64, 32);
    index.add("down", FormatId::Q5_1, 32, 64);
    index.add("embedding", FormatId::Q8_0, 100, 32);
    return index;
}

/// Embedding, one layer, head (tied): reads tokens, gives logits.
inline Tensor record_small_model(GraphBuilder& g) {
    Tensor x = g.embed_rows(g.weight("embedding", 100, 32));
    Tensor normed = g.rms_norm(x, g.vector("norm", 32), 1e-5F);
    const RopeOptions rope{.head_count = 4, .head_dim = 8, .rope_dim = 8, .factors = {}};
    const Tensor query = g.rope(g.matmul(g.weight("q", 32, 32), normed), rope);
    const StateSlot slot = g.add_layer_state(0, {2, 8, 8});
    const Tensor keys = g.matmul(g.weight("k", 16, 32), normed);
    const Tensor values = g.matmul(g.weight("v", 16, 32), normed);
    g.store_state(slot, keys, values);
    x = g.add(x, g.attention(slot, query, {.head_count = 4, .scale = 0.35F}));
    normed = g.rms_norm(x, g.vector("norm", 32), 1e-5F);
    const Tensor gate = g.matmul(g.weight("gate", 64, 32), normed);
    const Tensor up = g.matmul(g.weight("up", 64, 32), normed);
    const Tensor hidden = g.gated_activation(GateKind::Silu, gate, up);
    x = g.add(x, g.matmul(g.weight("down", 32, 64), hidden));
    const Tensor logits = g.matmul(g.weight("embedding", 100, 32), g.select_rows(x));
    g.output(logits);
    return logits;
}

inline Result<Graph> small_model(const IndexForTest& index) {
    const StateGroupSpec groups[] = {{}};
    GraphBuilder builder(index, groups, StateType::F16);
    record_small_model(builder);
    return builder.finish();
}

}  // namespace artel::graph
