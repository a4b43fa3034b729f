// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_options.hpp"

#include <pwd.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>

#include "cli/commands.hpp"
#include "models/architecture.hpp"

namespace artel::cli {

void add_cluster_options(CLI::App& command, ClusterOptions& options) {
    command.add_option("--parallel", options.parallel, "Answers computed at the same time")
        ->check(CLI::Range(1U, 1024U))
        ->capture_default_str();
    command
        .add_option("--expect-workers", options.expect_workers, "Workers that join from elsewhere")
        ->check(CLI::Range(1U, 64U));
    command.add_option("--worker-listen", options.worker_listen, "Address where workers join")
        ->capture_default_str();
    command.add_option("--join-key-file", options.join_key_file, "File to write the join key to")
        ->check(not_empty);
    command
        .add_option("--state-dir", options.state_dir,
                    "Where the cluster's identity and term are kept")
        ->check(not_empty);
}

Error check_cluster_options(const ModelOptions& model, const ClusterOptions& cluster) {
    ARTEL_TRY(check_model_options(model, cluster.expect_workers));
    const bool has_local = model.local_workers != 0 || cluster.expect_workers == 0;
    if (model.device.empty() || has_local) return ok();
    return invalid_argument(
        "--device is for local workers, and there are none; give it to each `artel worker`");
}

Error check_against_model(const gguf::Metadata& metadata, const ModelOptions& options,
                          std::uint32_t context) {
    ARTEL_ASSIGN(const models::Model model, models::open_model(metadata));
    if (context > model.shape.context_length)
        return invalid_argument("a context of {} is needed, the model's is {}", context,
                                model.shape.context_length);
    if (options.split.empty()) return ok();
    std::uint64_t layers = 0;
    for (const std::uint32_t part : options.split) layers += part;
    if (layers == model.shape.layer_count) return ok();
    return invalid_argument("--split has {} layers in all, the model {}", layers,
                            model.shape.layer_count);
}

runtime::ClusterServiceOptions service_options(const ModelOptions& model,
                                               const ClusterOptions& cluster) {
    runtime::ClusterServiceOptions options;
    options.model = model.model;
    options.local_workers = model.local_workers;
    // One machine to begin with: a single child, so that a crash of the engine leaves the API up.
    if (options.local_workers == 0 && cluster.expect_workers == 0)
        options.local_workers = model.worker_count();
    options.expect_workers = cluster.expect_workers;
    options.threads = model.threads;
    options.device = model.device_name();
    options.split = model.split;
    options.context = model.context;
    options.parallel = cluster.parallel;
    options.chunk = cluster.chunk;
    options.has_f32_state = model.state_type == "f32";
    options.worker_listen = cluster.worker_listen;
    options.join_key_file = cluster.join_key_file;
    options.state_dir =
        cluster.state_dir.empty() ? default_state_dir("coordinator") : cluster.state_dir;
    options.program = program_path();
    options.log_level = cluster.log_level;
    return options;
}

std::string default_state_dir(const std::string& name) {
    const char* const state = std::getenv("XDG_STATE_HOME");
    const char* const home = std::getenv("HOME");
    if (state != nullptr && *state != '\0') return std::filesystem::path(state) / "artel" / name;
    const passwd* const user = home == nullptr ? ::getpwuid(::getuid()) : nullptr;
    const char* const found = user != nullptr ? user->pw_dir : home;
    if (found == nullptr || *found != '/') return "";
    return std::filesystem::path(found) / ".local" / "state" / "artel" / name;
}

Error check_state_dir(const std::filesystem::path& directory) {
    if (!directory.empty()) return ok();
    return failed_precondition(
        "this user has no home directory to keep the cluster's keys in; give --state-dir");
}

std::string program_path() {
    std::error_code failure;
    const auto path = std::filesystem::read_symlink("/proc/self/exe", failure);
    return failure ? std::string("artel") : path.string();
}

}  // namespace artel::cli
