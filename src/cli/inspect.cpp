// SPDX-License-Identifier: Apache-2.0
// artel inspect MODEL.gguf
#include "cli/commands.hpp"

namespace artel::cli {

void add_inspect_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("inspect", "Say what a GGUF file holds");
    command->callback([&run] { run = [] { return unimplemented("inspect is not built yet"); }; });
}

}  // namespace artel::cli
