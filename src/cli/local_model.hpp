// SPDX-License-Identifier: Apache-2.0
// LocalModel: a model computed in this process, split over as many stages as the options ask for.
// For `run` and `eval`. The index must outlive it.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/backend.hpp"
#include "base/result.hpp"
#include "cli/model_options.hpp"
#include "engine/stage_chain.hpp"
#include "gguf/gguf_index.hpp"

namespace artel::cli {

struct LocalLimits {
    std::uint32_t context = 0;  // positions of the one sequence
    std::uint32_t rows_max = 0;
};

class LocalModel {
  public:
    /// Checks the whole file before it loads weights; a bar on stderr if that is a terminal.
    static Result<std::unique_ptr<LocalModel>> load(const gguf::GgufIndex& index,
                                                    const ModelOptions& options,
                                                    const LocalLimits& limits);
    engine::StageChain& chain() { return chain_; }

  private:
    LocalModel(std::unique_ptr<backends::Backend> backend, engine::StageChain chain)
        : backend_(std::move(backend)), chain_(std::move(chain)) {}
    std::unique_ptr<backends::Backend> backend_;
    engine::StageChain chain_;
};

/// Tokens that a sequence may hold: --context, else the model's own. Errors: those of open_model.
Result<std::uint32_t> context_limit(const gguf::GgufIndex& index, const ModelOptions& options);

}  // namespace artel::cli
