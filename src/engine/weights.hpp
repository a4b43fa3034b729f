// SPDX-License-Identifier: Apache-2.0
// Weights of one stage: read from a WeightSource in bounded pieces straight into memory of the
// backend. Only the tensors that the stage's graph names are read; no tensor is ever held whole
// anywhere but in the backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "base/result.hpp"
#include "gguf/gguf_index.hpp"
#include "gguf/tensor_reader.hpp"
#include "graph/graph.hpp"

namespace artel::engine {

/// Where the bytes of tensors come from: a file here, a cache, or a stream from elsewhere. Called
/// with ascending offsets within one tensor, each byte once.
class WeightSource {
  public:
    virtual ~WeightSource() = default;
    virtual Error read(std::string_view tensor, std::uint64_t offset,
                       std::span<std::byte> target) = 0;
};

/// The model file itself. The index must outlive the source.
class FileWeightSource final : public WeightSource {
  public:
    /// Errors: those of gguf::TensorReader::open, e.g. a file that ends before its tensors do.
    static Result<FileWeightSource> open(const gguf::GgufIndex& index);
    Error read(std::string_view tensor, std::uint64_t offset, std::span<std::byte> target) override;

  private:
    FileWeightSource(const gguf::GgufIndex& index, gguf::TensorReader reader)
        : index_(index), reader_(std::move(reader)) {}
    const gguf::GgufIndex& index_;
    gguf::TensorReader reader_;
};

/// Called with the bytes read so far and in all.
using LoadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct Weights {
    std::vector<std::unique_ptr<backends::Buffer>> buffers;  // in the order of Graph::weights
    std::vector<backends::Bindings::BoundWeight> bound;      // the same
};

/// Errors name the tensor: those of the source, ResourceExhausted (no memory).
Result<Weights> load_weights(const graph::Graph& graph, backends::Backend& backend,
                             WeightSource& source, const LoadProgress& progress = {});

}  // namespace artel::engine
