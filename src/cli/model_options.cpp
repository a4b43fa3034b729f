// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <thread>

#include "backends/registry.hpp"

namespace artel::cli {

namespace {
constexpr std::uint32_t kWorkersMax = 256;
constexpr std::uint32_t kContextMax = 1U << 30U;
}  // namespace

std::uint32_t ModelOptions::worker_count() const {
    if (local_workers != 0) return local_workers;
    return split.empty() ? 1 : static_cast<std::uint32_t>(split.size());
}

std::uint32_t ModelOptions::threads_per_worker() const {
    if (threads != 0) return threads;
    return std::max(1U, std::thread::hardware_concurrency() / worker_count());
}

void add_model_options(CLI::App& command, ModelOptions& options) {
    command.add_option("-m,--model", options.model, "GGUF file (of a split model: its first part)")
        ->required();
    command.add_option("--local-workers", options.local_workers, "Workers to run on this machine")
        ->check(CLI::Range(1U, kWorkersMax));
    command
        .add_option("--threads", options.threads,
                    "Threads of each local worker (default: cores / workers)")
        ->check(CLI::Range(1U, kThreadsMax));
    command
        .add_option("--split", options.split,
                    "Layers of each worker in order, e.g. 12,10,8 (default: planned)")
        ->delimiter(',');
    command.add_option("--context", options.context, "Tokens that one sequence may hold")
        ->check(CLI::Range(1U, kContextMax));
    command.add_option("--state-type", options.state_type, "Type of keys and values in the state")
        ->check(CLI::IsMember({"f16", "f32"}))
        ->capture_default_str();
    command.add_option("--device", options.device, "Backend to compute with (default: cpu)");
    command
        .add_option("--chat-template", options.chat_template,
                    "Jinja file to use instead of the model's own template")
        ->check(CLI::ExistingFile);
}

Error check_model_options(const ModelOptions& options, std::uint32_t joining_workers) {
    const auto names = backends::backend_names();
    if (!options.device.empty() &&
        std::find(names.begin(), names.end(), options.device) == names.end())
        return invalid_argument("--device {}: this build has {}", options.device,
                                fmt::join(names, ", "));
    const auto parts = options.split.size();
    if (parts > kWorkersMax)
        return invalid_argument("--split names {} workers, at most {} are supported", parts,
                                kWorkersMax);
    const auto workers = options.local_workers + joining_workers;
    if (parts != 0 && workers != 0 && parts != workers)
        return invalid_argument("--split names {} workers, {} are asked for", parts, workers);
    return ok();
}

}  // namespace artel::cli
