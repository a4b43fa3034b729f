// SPDX-License-Identifier: Apache-2.0
// StageChain: the stages of a model in one process, handing activations on as bytes, with the page
// tables of a few sequences. It is to tests what a cluster is to users: any split, any chunk, any
// mix of sequences, without a network. Pages that a window has passed go back to its free list.
// One thread. The backend must outlive the chain.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "base/result.hpp"
#include "engine/sampler.hpp"
#include "engine/stage.hpp"

namespace artel::engine {

struct ChainOptions {
    std::vector<std::uint32_t> split;  // layers of each stage in order; empty: one stage
    graph::StateType state_type = graph::StateType::F16;
    std::uint32_t context = 0;  // 0: the model's own
    std::uint32_t rows_max = 512;
    std::uint32_t sequences = 1;  // at once
};

/// Layers of each stage, as equal as can be, the first ones taking what is left over. Fewer stages
/// than asked for where there are not as many layers. Requires both above 0.
std::vector<std::uint32_t> even_split(std::uint32_t layer_count, std::uint32_t stages);

/// New tokens of one sequence in a step; they follow those it already has.
struct SequenceTokens {
    std::uint32_t sequence = 0;  // below ChainOptions::sequences
    std::span<const TokenId> tokens;
    bool wants_all_logits = false;  // else only those after the last token
};

class StageChain {
  public:
    /// Errors: those of Stage::create; InvalidArgument where the split's sum is not the model's
    /// layers.
    static Result<StageChain> create(const gguf::GgufIndex& index, const ChainOptions& options,
                                     backends::Backend& backend, WeightSource& source,
                                     const LoadProgress& progress = {});

    /// One step through all stages. Logits of the rows that want them, in the order given:
    /// (L, vocabulary). Errors: those of Stage::run; ResourceExhausted (context is full).
    Result<std::vector<float>> step(std::span<const SequenceTokens> rows);
    /// One sequence in steps of at most `chunk` tokens; `take` gets the logits of each step:
    /// all rows', or those of the very last token only.
    Error feed(const SequenceTokens& tokens, std::uint32_t chunk,
               const std::function<Error(std::span<const float>)>& take);
    /// Forgets a sequence; its pages are free again.
    void drop(std::uint32_t sequence);

    std::uint32_t length(std::uint32_t sequence) const { return sequences_[sequence].length; }
    const models::ModelShape& model_shape() const { return stages_.front()->model_shape(); }
    std::span<const std::unique_ptr<Stage>> stages() const { return stages_; }
    std::uint32_t context() const { return stages_.front()->options().context; }

  private:
    struct Sequence {
        std::uint32_t length = 0;
        std::vector<PageRun> tables;  // (groups)
    };
    StageChain() = default;
    Error check_rows(std::span<const SequenceTokens> rows) const;
    Error extend_tables(Sequence& sequence, std::uint32_t new_tokens);
    Result<std::vector<float>> run_stages(StageBatch& batch);

    std::vector<std::unique_ptr<Stage>> stages_;
    std::vector<Sequence> sequences_;
    std::vector<std::vector<std::uint32_t>> free_pages_;  // (groups)
};

}  // namespace artel::engine
