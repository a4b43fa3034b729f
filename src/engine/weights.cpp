// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.hpp"

#include <algorithm>

#include "base/byte_count.hpp"

namespace artel::engine {

namespace {

constexpr std::uint64_t kPieceBytes = 4ULL << 20;  // read at once, or one row if that is more

/// Moves one weight from the source into `buffer`, piece by piece of whole rows.
class WeightCopy {
  public:
    WeightCopy(backends::Backend& backend, WeightSource& source)
        : backend_(backend), source_(source) {}

    Error copy(const graph::Weight& weight, const backends::WeightLayout& layout,
               backends::Buffer& buffer) {
        const std::uint64_t row_bytes = weight.bytes / weight.rows;
        const std::uint64_t rows_max = std::max<std::uint64_t>(1, kPieceBytes / row_bytes);
        for (std::uint64_t row = 0; row < weight.rows; row += rows_max) {
            const std::uint64_t rows = std::min(rows_max, weight.rows - row);
            piece_.resize(rows * row_bytes);
            ARTEL_TRY(source_.read(weight.name, row * row_bytes, piece_));
            ARTEL_TRY(backend_.upload_rows(buffer, layout, row, piece_));
        }
        return ok();
    }

  private:
    backends::Backend& backend_;
    WeightSource& source_;
    std::vector<std::byte> piece_;
};

}  // namespace

Result<FileWeightSource> FileWeightSource::open(const gguf::GgufIndex& index) {
    ARTEL_ASSIGN(gguf::TensorReader reader, gguf::TensorReader::open(index));
    return FileWeightSource(index, std::move(reader));
}

Error FileWeightSource::read(std::string_view tensor, std::uint64_t offset,
                             std::span<std::byte> target) {
    const gguf::TensorInfo* found = index_.find_tensor(tensor);
    if (found == nullptr) return not_found("{}: no such tensor in the file", tensor);
    return reader_.read(*found, offset, target);
}

Result<Weights> load_weights(const graph::Graph& graph, backends::Backend& backend,
                             WeightSource& source, const LoadProgress& progress) {
    Weights weights;
    WeightCopy pieces(backend, source);
    std::uint64_t total = 0;
    for (const graph::Weight& weight : graph.weights) total += weight.bytes;
    std::uint64_t done = 0;
    for (const graph::Weight& weight : graph.weights) {
        ARTEL_ASSIGN(const backends::WeightLayout layout,
                     backend.layout(weight.format, weight.rows, weight.columns));
        auto buffer = backend.allocate(layout.bytes);
        if (!buffer.ok()) return with_context(buffer.status(), weight.name);
        ARTEL_TRY(pieces.copy(weight, layout, **buffer));
        weights.bound.push_back({.buffer = buffer->get(), .layout = layout});
        weights.buffers.push_back(*std::move(buffer));
        done += weight.bytes;
        if (progress) progress(done, total);
    }
    return weights;
}

}  // namespace artel::engine
