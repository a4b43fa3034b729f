// SPDX-License-Identifier: Apache-2.0
// artel status: what the cluster of a running `artel serve` does.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "runtime/control_socket.hpp"

namespace artel::cli {
namespace {

Error print_status(const std::string& state_dir) {
    ARTEL_TRY(check_state_dir(state_dir));
    ARTEL_ASSIGN(const std::string text, runtime::ask_control_socket(state_dir, "status"));
    std::fputs(text.c_str(), stdout);
    return ok();
}

}  // namespace

void add_status_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("status", "Show what a running server and its workers do");
    const auto state_dir = std::make_shared<std::string>(default_state_dir("coordinator"));
    command->add_option("--state-dir", *state_dir, "State directory of the server")
        ->check(not_empty);
    command->callback(
        [&run, state_dir] { run = [state_dir] { return print_status(*state_dir); }; });
}

}  // namespace artel::cli
