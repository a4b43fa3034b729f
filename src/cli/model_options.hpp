// SPDX-License-Identifier: Apache-2.0
// The options that every command with a model shares (serve, run, eval, bench, plan): which file,
// how many local workers, how the layers are split over them, threads, context, type of the state.
// Parsing only; what the values mean for a model is checked where the model is known.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace artel::cli {

inline constexpr std::uint32_t kThreadsMax = 1024;

struct ModelOptions {
    std::string model;                 // -m: path of the GGUF file, or of the first of its parts
    std::uint32_t local_workers = 0;   // 0: not given
    std::uint32_t threads = 0;         // in each local worker; 0: cores / workers, at least 1
    std::vector<std::uint32_t> split;  // layers of each worker in order; empty: planned
    std::uint32_t context = 0;         // 0: not given
    std::string state_type = "f16";    // "f16" or "f32"
    std::string device;                // backend by name; empty: not given, which means cpu
    std::string chat_template;         // path of a Jinja file; empty: the model's own

    /// Workers that the options ask for: --local-workers, else the parts of --split, else 1.
    std::uint32_t worker_count() const;
    /// Threads of each worker, never 0.
    std::uint32_t threads_per_worker() const;
    std::string device_name() const { return device.empty() ? "cpu" : device; }
};

/// Adds the options to `command`; `options` must live until the command has run.
void add_model_options(CLI::App& command, ModelOptions& options);

/// What the parser can't see: --split against --local-workers and those that join from elsewhere,
/// --device against what is built in.
Error check_model_options(const ModelOptions& options, std::uint32_t joining_workers = 0);

}  // namespace artel::cli
