// SPDX-License-Identifier: Apache-2.0
// artel worker: one machine's share of a cluster.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/byte_count.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/log_name.hpp"
#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "cli/stop_signals.hpp"
#include "runtime/worker_node.hpp"

namespace artel::cli {
namespace {

struct WorkerCommand {
    std::string join;
    std::string memory;
    std::vector<std::string> model_dirs;
    runtime::WorkerNodeOptions node;
};

/// --join KEY, --join @FILE, or the environment.
Result<std::string> join_key_text(const std::string& option) {
    constexpr std::uint64_t kKeyBytesMax = 4096;
    if (option.empty()) {
        const char* const key = std::getenv("ARTEL_JOIN_KEY");
        return std::string(key != nullptr ? key : "");
    }
    if (option.front() != '@') return option;
    ARTEL_ASSIGN(std::string key, read_file(option.substr(1), kKeyBytesMax));
    if (!key.empty()) return key;
    return invalid_argument("--join {}: the file is empty; expected a join key", option);
}

std::string host_name() {
    char name[65] = "worker";
    ::gethostname(name, sizeof(name) - 1);
    return name;
}

Error work(WorkerCommand command) {
    block_stop_signals();
    raise_descriptor_limit();
    runtime::WorkerNodeOptions& node = command.node;
    ARTEL_ASSIGN(node.join_key, join_key_text(command.join));
    if (!command.memory.empty()) {
        ARTEL_ASSIGN(node.memory_bytes, parse_byte_count(command.memory));
        if (node.memory_bytes == 0)
            return invalid_argument("--memory {}: a worker needs some", command.memory);
    }
    if (node.name.empty()) node.name = host_name();
    set_log_name(node.name);  // several workers often share one terminal or journal
    if (node.threads == 0) node.threads = std::max(1U, std::thread::hardware_concurrency());
    if (node.state_dir.empty()) node.state_dir = default_state_dir("worker-" + node.name);
    ARTEL_TRY(check_state_dir(node.state_dir));
    if (node.cache_dir.empty()) node.cache_dir = node.state_dir / "cache";
    for (const std::string& directory : command.model_dirs) node.model_dirs.emplace_back(directory);

    runtime::EventLoop loop;
    ARTEL_ASSIGN(auto worker, runtime::WorkerNode::create(loop, node));
    loop.run([&] { worker->start(); });
    log_info("worker is up", {{"name", node.name}, {"listen", worker->listen_address()}});
    while (!stop_was_asked(std::chrono::hours(1))) {
    }
    log_info("worker stops");
    worker->stop();
    loop.stop();
    return ok();
}

}  // namespace

void add_worker_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("worker", "Hold a share of a model for a cluster");
    const auto options = std::make_shared<WorkerCommand>();
    command->add_option("--join", options->join,
                        "Join key, or @FILE that holds it (or ARTEL_JOIN_KEY in the environment)");
    command->add_option("--listen", options->node.listen, "Where neighbours reach this worker")
        ->capture_default_str();
    command->add_option("--advertise", options->node.advertise,
                        "The address given to neighbours, if not that of --listen");
    command
        ->add_option("--state-dir", options->node.state_dir, "Where certificate and epoch are kept")
        ->check(not_empty);
    command
        ->add_option("--name", options->node.name,
                     "This worker's name in the cluster; default: the host's")
        ->check(not_empty);
    command->add_option("--memory", options->memory,
                        "Memory that it may use, e.g. 14GiB; default: what is available");
    options->node.threads = 0;
    command
        ->add_option("--threads", options->node.threads, "Threads that compute; default: all cores")
        ->check(CLI::Range(1U, kThreadsMax));
    command->add_option("--device", options->node.device, "Backend to compute with")
        ->capture_default_str();
    command->add_option("--model-dir", options->model_dirs,
                        "Directory with local copies of models");
    command->add_option("--cache-dir", options->node.cache_dir, "Where streamed weights are kept");
    command->callback([&run, options] { run = [options] { return work(*options); }; });
}

}  // namespace artel::cli
