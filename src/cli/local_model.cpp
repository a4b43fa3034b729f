// SPDX-License-Identifier: Apache-2.0
#include "cli/local_model.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/byte_count.hpp"
#include "base/log.hpp"
#include "models/description.hpp"
#include "runtime/device.hpp"

namespace artel::cli {

namespace {

/// A bar on stderr that rewrites its line; nothing where stderr is no terminal.
engine::LoadProgress progress_bar() {
    if (isatty(STDERR_FILENO) == 0) return {};
    return [last = std::uint64_t{101}](std::uint64_t done, std::uint64_t total) mutable {
        const std::uint64_t percent = total == 0 ? 100 : done * 100 / total;
        if (percent == last) return;
        last = percent;
        std::fprintf(stderr, "\rloading weights: %3llu %%%s",
                     static_cast<unsigned long long>(percent), percent == 100 ? "\n" : "");
    };
}

void warn_of_unused(const models::ModelDescription& description) {
    if (description.unused.empty()) return;
    log_warning("the model file holds tensors that no part of the model uses",
                {{"tensors", description.unused.size()},
                 {"bytes", format_byte_count(description.unused_bytes)},
                 {"first", description.unused.front().name}});
}

}  // namespace

Result<std::uint32_t> context_limit(const gguf::GgufIndex& index, const ModelOptions& options) {
    ARTEL_ASSIGN(const models::Model model, models::open_model(index.metadata()));
    return options.context != 0 ? options.context : model.shape.context_length;
}

Result<std::unique_ptr<LocalModel>> LocalModel::load(const gguf::GgufIndex& index,
                                                     const ModelOptions& options,
                                                     const LocalLimits& limits) {
    ARTEL_TRY(check_model_options(options));
    const auto state_type =
        options.state_type == "f32" ? graph::StateType::F32 : graph::StateType::F16;
    ARTEL_ASSIGN(const models::ModelDescription description, models::describe(index, state_type));
    warn_of_unused(description);
    ARTEL_ASSIGN(auto backend,
                 runtime::open_device(options.device_name(), options.threads_per_worker()));
    ARTEL_ASSIGN(auto source, engine::FileWeightSource::open(index));
    engine::ChainOptions chain{.split = options.split,
                               .state_type = state_type,
                               .context = limits.context,
                               .rows_max = limits.rows_max,
                               .sequences = 1};
    if (chain.split.empty())
        chain.split = engine::even_split(description.shape.layer_count, options.worker_count());
    ARTEL_ASSIGN(auto stages,
                 engine::StageChain::create(index, chain, *backend, source, progress_bar()));
    return std::unique_ptr<LocalModel>(new LocalModel(std::move(backend), std::move(stages)));
}

}  // namespace artel::cli
