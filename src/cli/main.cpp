// SPDX-License-Identifier: Apache-2.0
// Entry point: parses the command line and runs one command.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

#include "base/log.hpp"
#include "cli/commands.hpp"

namespace {

/// Opening a pipe that nobody writes to would wait for ever.
std::string refuse_unless_regular_file(const std::string& path) {
    std::error_code failure;
    return std::filesystem::is_regular_file(path, failure) ? "" : path + ": not a regular file";
}

/// The parser only says that a command is needed, which is not news to who misspelled one.
bool names_unknown_command(const CLI::App& app, int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') return false;
    const auto is_it = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    return app.get_subcommands(is_it).empty();
}

}  // namespace

int main(int argc, char** argv) {
    using namespace artel;
    CLI::App app{"artel: one language model over many machines"};
    app.set_version_flag("--version", "artel " ARTEL_VERSION);
    std::string log_level = "info";
    app.add_option("--log-level", log_level, "trace, debug, info, warning, error or off")
        ->capture_default_str();
    app.set_config("--config", "",
                   "TOML file of options by their long names: a table a command, e.g. [serve]")
        ->check(CLI::Validator(refuse_unless_regular_file, "FILE"));
    app.allow_config_extras(CLI::config_extras_mode::error);
    app.require_subcommand(1);
    app.fallthrough();

    cli::Command run;
    cli::add_inspect_command(app, run);
    cli::add_tokenize_command(app, run);
    cli::add_detokenize_command(app, run);
    cli::add_render_command(app, run);
    cli::add_eval_command(app, run);
    cli::add_run_command(app, run);
    cli::add_serve_command(app, run);
    cli::add_plan_command(app, run);
    cli::add_bench_command(app, run);
    cli::add_worker_command(app, run);
    cli::add_status_command(app, run);
    cli::add_key_command(app, run);

    if (names_unknown_command(app, argc, argv)) {
        std::fprintf(stderr, "artel: there is no command '%s'; `artel --help` lists them\n",
                     argv[1]);
        return 2;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    const auto level = parse_log_level(log_level);
    if (!level.ok()) {
        std::fprintf(stderr, "artel: %s\n", std::string(level.status().message()).c_str());
        return 2;
    }
    set_log_level(*level);
    if (const Error error = run(); !error.ok()) {
        std::fprintf(stderr, "artel: %s\n", std::string(error.message()).c_str());
        return 1;
    }
    return 0;
}
