// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a stage are read from, each from the first place that can be trusted:
//   1. a local copy of the model, if it is the very file that the coordinator serves, or the
//      tensor's hash is the coordinator's; a tensor that differs is named in the log;
//   2. the cache of an earlier stream, by the same hash;
//   3. the coordinator, whose bytes then go into the cache.
// The coordinator is the authority: workers that disagree with it would give other answers. Used by
// the one thread that loads. A cache that cannot be written costs nothing but the next stream.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "engine/weights.hpp"
#include "runtime/model_file.hpp"
#include "runtime/range_stream.hpp"
#include "runtime/tensor_cache.hpp"

namespace artel::runtime {

struct WeightSourceParts {
    std::shared_ptr<const gguf::GgufIndex> index;
    std::shared_ptr<const ModelFile> local;  // nullptr: no copy here
    std::shared_ptr<RangeStream> stream;
    std::optional<TensorCache> cache;
    std::filesystem::path state_dir;  // where hashes of the local copy are kept; empty: nowhere
};

/// Its reads fail with Cancelled once the stream is aborted; else with the stream's errors.
std::unique_ptr<engine::WeightSource> make_weight_source(WeightSourceParts parts);

}  // namespace artel::runtime
