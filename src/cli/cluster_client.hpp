// SPDX-License-Identifier: Apache-2.0
// What run, eval and bench need of a cluster: started for one command, gone at its end, and a
// request that is waited for. Handlers run on the calling thread, never on the cluster's.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cli/model_options.hpp"
#include "cluster/request.hpp"
#include "runtime/cluster_service.hpp"

namespace artel::cli {

struct ClientOptions {
    std::uint32_t context = 0;
    std::uint32_t parallel = 1;
    std::uint32_t chunk = 256;
    std::string log_level = "warning";  // of this process and the workers
};

/// --log-level, or "warning" where it is not given: the output of these commands is the point.
std::string client_log_level(const CLI::App& app);

/// Whether the options ask for worker processes; else the work is done in this one.
bool wants_workers(const ModelOptions& model);

/// A cluster that serves: worker processes if the options ask for them, else a worker inside this
/// process. Shows loading on a terminal. Errors: those of the service; DeadlineExceeded.
Result<std::unique_ptr<runtime::ClusterService>> start_cluster(const ModelOptions& model,
                                                               const ClientOptions& options);

struct RequestHandlers {
    std::function<Error(const cluster::Token&)> on_token = {};
    /// (rows, vocabulary), positions in order without gaps.
    std::function<Error(std::span<const float>)> on_logits = {};
};

/// Submits and waits for the end; cancels when a handler fails. Errors: the handler's; a refusal
/// (InvalidArgument, Unavailable); a failure (Unavailable); DeadlineExceeded (nothing came for
/// long); Cancelled (a signal asks for the end).
Error run_request(cluster::RequestPort& port, cluster::Request request,
                  const RequestHandlers& handlers);

/// How a command ends that SIGTERM or SIGINT asked to.
Error stopped_by_signal();

/// The same words for people wherever a refusal ends a command.
Error refusal_error(const cluster::Refusal& refusal);

}  // namespace artel::cli
