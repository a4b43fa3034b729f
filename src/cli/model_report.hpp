// SPDX-License-Identifier: Apache-2.0
// ModelReport: what `inspect` says about a model file, gathered from its index alone, as plain
// values. It is made for any file that opens: what this build can't run is said, not refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf_index.hpp"

namespace artel::cli {

/// Tensors that belong together: one layer, or all that belong to none.
struct LayerReport {
    std::string name;  // "layer 3" or "outside layers"
    std::uint64_t bytes = 0;
    std::vector<const gguf::TensorInfo*> tensors;  // of the index
};

struct FormatReport {
    std::string name;
    std::uint64_t tensor_count = 0;
    std::uint64_t bytes = 0;
    bool is_computable = false;  // by this build
};

/// State of one group of layers, over all layers.
struct StateReport {
    std::string kind;                   // "paged", "windowed" or "slot"
    std::uint32_t window = 0;           // positions, of a windowed group
    std::uint64_t bytes_per_token = 0;  // with f16 values
    std::uint64_t bytes_per_sequence = 0;
};

/// Weights by what they are for. Of routed experts a token reads only some.
struct KindReport {
    std::string name;  // "attention", "dense", "shared experts", "routed experts", ...
    std::uint64_t bytes = 0;
};

struct ModelReport {
    std::string architecture;  // empty: the file does not say
    std::uint64_t parameter_count = 0;
    std::uint64_t missing_bytes = 0;  // of tensor data, where the file is only a part
    std::vector<LayerReport> layers;  // outside layers first
    std::vector<FormatReport> formats;
    std::vector<StateReport> state;            // empty where the model can't be described
    std::vector<KindReport> kinds;             // of used tensors; empty as `state`
    std::uint64_t active_bytes_per_token = 0;  // of weights that one token reads
    std::uint64_t unused_count = 0;            // tensors that the architecture has no use for
    std::uint64_t unused_bytes = 0;
    std::vector<std::string> unsupported;  // why this build can't run the model; empty: it can
};

/// The report points into `index`.
ModelReport report_model(const gguf::GgufIndex& index);

/// Layer number of "blk.12.attn_q.weight", or -1.
std::int64_t layer_of(std::string_view tensor_name);

}  // namespace artel::cli
