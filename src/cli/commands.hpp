// SPDX-License-Identifier: Apache-2.0
// The commands of the program, one file each. A command adds its sub-command and flags to `app` and
// leaves in `run` what is to be done if the user chose it. Exit codes: 0 done, 1 refused input, 2
// usage.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>

#include "base/result.hpp"

namespace artel::cli {

/// What the chosen command does; an Error is printed to stderr and ends the process with exit
/// code 1.
using Command = std::function<Error()>;

/// Check of options whose empty value, often an unset variable of a shell, would silently mean the
/// default: what is wrong with `value`, or nothing.
inline std::string not_empty(const std::string& value) {
    return value.empty() ? "empty; leave the option out for its default" : "";
}

void add_inspect_command(CLI::App& app, Command& run);
void add_tokenize_command(CLI::App& app, Command& run);
void add_detokenize_command(CLI::App& app, Command& run);
void add_render_command(CLI::App& app, Command& run);
void add_eval_command(CLI::App& app, Command& run);
void add_run_command(CLI::App& app, Command& run);
void add_serve_command(CLI::App& app, Command& run);
void add_plan_command(CLI::App& app, Command& run);
void add_bench_command(CLI::App& app, Command& run);
void add_worker_command(CLI::App& app, Command& run);
void add_status_command(CLI::App& app, Command& run);
void add_key_command(CLI::App& app, Command& run);

}  // namespace artel::cli
