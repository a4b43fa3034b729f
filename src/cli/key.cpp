// SPDX-License-Identifier: Apache-2.0
// artel key: a new join key of a running `artel serve`.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "runtime/control_socket.hpp"

namespace artel::cli {
namespace {

struct KeyCommand {
    std::string state_dir = default_state_dir("coordinator");
    std::uint32_t uses = 1;
};

Error print_key(const KeyCommand& options) {
    ARTEL_TRY(check_state_dir(options.state_dir));
    ARTEL_ASSIGN(
        const std::string key,
        runtime::ask_control_socket(options.state_dir, fmt::format("key {}", options.uses)));
    std::printf("%s\n", key.c_str());
    return ok();
}

}  // namespace

void add_key_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand(
        "key", "Print a key that lets workers join a running server for an hour");
    const auto options = std::make_shared<KeyCommand>();
    command->add_option("--state-dir", options->state_dir, "State directory of the server")
        ->check(not_empty);
    command->add_option("--uses", options->uses, "Workers that may join with it")
        ->check(CLI::Range(1U, 64U))
        ->capture_default_str();
    command->callback([&run, options] { run = [options] { return print_key(*options); }; });
}

}  // namespace artel::cli
