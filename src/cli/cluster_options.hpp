// SPDX-License-Identifier: Apache-2.0
// The options of commands that run a cluster (serve; run, eval and bench with worker processes),
// and how they become options of the service.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "cli/model_options.hpp"
#include "gguf/metadata.hpp"
#include "runtime/cluster_service.hpp"

namespace artel::cli {

struct ClusterOptions {
    std::uint32_t parallel = 4;
    std::uint32_t chunk = 256;
    std::uint32_t expect_workers = 0;
    std::string worker_listen = "127.0.0.1:0";
    std::string join_key_file;
    std::string state_dir;
    std::string log_level = "info";
};

void add_cluster_options(CLI::App& command, ClusterOptions& options);
/// check_model_options() and what of the two contradicts each other.
Error check_cluster_options(const ModelOptions& model, const ClusterOptions& cluster);
/// What no worker that joins could change, so that nobody waits for it: a context beyond the
/// model's (0: none is asked for), a split of other layers.
Error check_against_model(const gguf::Metadata& metadata, const ModelOptions& options,
                          std::uint32_t context);
runtime::ClusterServiceOptions service_options(const ModelOptions& model,
                                               const ClusterOptions& cluster);

/// Where a node keeps what must outlive it: XDG_STATE_HOME/artel/NAME, else
/// ~/.local/state/artel/NAME; empty for a user without a home.
std::string default_state_dir(const std::string& name);
/// Errors: FailedPrecondition (empty).
Error check_state_dir(const std::filesystem::path& directory);
/// This very program, to be started again as a worker.
std::string program_path();

}  // namespace artel::cli
