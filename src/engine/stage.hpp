// SPDX-License-Identifier: Apache-2.0
// Stage: one machine's share of a model, layers [a, b) and perhaps an end, on one backend. run()
// turns a step's rows (tokens, or activations of the stage before) into activations for the next
// stage, or logits. It knows positions and pages, and nothing of requests, sampling or networks.
// Batches come from the wire: run() checks everything once, before any kernel, and answers with an
// Error; a refused batch has changed nothing.
// One thread at a time. The backend must outlive the stage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"
#include "engine/state_cache.hpp"
#include "engine/weights.hpp"
#include "models/stage_graph.hpp"

namespace artel::engine {

struct StageOptions {
    models::StageParts parts;
    graph::StateType state_type = graph::StateType::F16;
    graph::RowCounts rows_max{.step = 512, .logits = 512};  // in one step
    std::uint32_t context = 0;                              // positions are below it
    std::vector<std::uint32_t> pages;                       // of each state group
};

/// The pages of one sequence in one group: pages[i] holds positions
/// [(first_page + i) * 64, (first_page + i + 1) * 64).
struct PageRun {
    std::uint32_t first_page = 0;
    std::vector<std::uint32_t> pages;
};

/// The rows of a step. R: all rows, L: those that want logits.
struct StageBatch {
    std::vector<std::uint32_t> sequences;   // (R): index into page_tables, by sequence of this step
    std::vector<std::uint32_t> positions;   // (R): ascending within a sequence
    std::vector<std::uint32_t> tokens;      // (R): read by the input end only
    std::vector<std::uint32_t> logit_rows;  // (L): ascending row numbers; the output end only
    std::vector<PageRun> page_tables;       // (sequences of this step, groups)
    std::vector<PageCopy> page_copies;      // done first, in order
    SharedBytes activations;                // (R, width) float32 LE; all but the input end
};

struct StageResult {
    std::vector<float> activations;  // (R, width), unless the stage has the output end
    std::vector<float> logits;       // (L, vocabulary), if it has
};

class Stage {
  public:
    /// Loads the tensors of these parts, and no others. Errors: those of record_stage and
    /// load_weights, Unimplemented (the backend can't run an op), ResourceExhausted (memory),
    /// InvalidArgument (options).
    static Result<std::unique_ptr<Stage>> create(const gguf::GgufIndex& index,
                                                 const StageOptions& options,
                                                 backends::Backend& backend, WeightSource& source,
                                                 const LoadProgress& progress = {});

    /// Errors: InvalidArgument (the batch), Internal and others (the device).
    Result<StageResult> run(const StageBatch& batch);

    const models::ModelShape& model_shape() const { return shape_; }
    const StageOptions& options() const { return options_; }
    const graph::Graph& graph() const { return prepared_->graph(); }
    std::uint64_t weight_bytes() const;
    std::uint64_t state_bytes() const { return state_.bytes(); }

  private:
    Stage(models::ModelShape shape, const StageOptions& options, backends::Backend& backend);
    Error check_sizes(const StageBatch& batch) const;
    Error load_activations(const StageBatch& batch);

    models::ModelShape shape_;
    StageOptions options_;
    graph::RunLimits limits_;
    backends::Backend& backend_;
    Weights weights_;
    StateCache state_;
    std::unique_ptr<backends::PreparedGraph> prepared_;  // after what it is bound to
    std::vector<float> activations_;                     // (R, width) of the running step
};

/// The bytes of activations as they travel: float32, little-endian.
SharedBytes to_bytes(const std::vector<float>& activations);

}  // namespace artel::engine
