// SPDX-License-Identifier: Apache-2.0
// artel plan -m MODEL.gguf [--cluster cluster.toml] [--parallel N] [--json]: who would hold what.
// Reads the index of the model only, so a file that holds nothing but its header will do.
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cluster_file.hpp"
#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/model_text.hpp"
#include "cli/plan_table.hpp"
#include "quant/type_names.hpp"
#include "runtime/device.hpp"
#include "runtime/model_profile.hpp"
#include "runtime/probe.hpp"

namespace artel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PlanCommand {
    ModelOptions model;
    std::string cluster_file;  // empty: this machine
    std::uint32_t parallel = ClusterOptions{}.parallel;
    bool wants_json = false;
};

Result<cluster::ModelProfile> read_profile(const ModelOptions& options) {
    ARTEL_ASSIGN(const auto index, gguf::GgufIndex::open(options.model, quant::block_size_of));
    const auto state_type =
        options.state_type == "f32" ? graph::StateType::F32 : graph::StateType::F16;
    ARTEL_ASSIGN(const auto description, models::describe(index, state_type));
    const std::string name = std::filesystem::path(options.model).filename().string();
    // The digest names a model between nodes; a plan needs none.
    return runtime::model_profile(name, index, {}, description, ClusterOptions{}.chunk);
}

/// The workers that `serve` would start here. They share the machine's memory.
Result<std::vector<cluster::WorkerProfile>> local_workers(const ModelOptions& options,
                                                          const cluster::ModelProfile& model) {
    const std::uint32_t threads = options.threads_per_worker();
    ARTEL_ASSIGN(const auto backend, runtime::open_device(options.device_name(), threads));
    protocol::WorkerReport report = runtime::probe_worker(
        0, threads, backend->describe().arithmetic_class, backend->describe().device);
    std::vector<cluster::WorkerProfile> workers;
    for (std::uint32_t i = 0; i < options.worker_count(); ++i) {
        report.name = fmt::format("local-{}", i + 1);
        workers.push_back(cluster::worker_profile(report, model));
    }
    return workers;
}

Json to_json(const std::string& model, const PlanView& view) {
    Json workers = Json::array();
    for (const PlanRow& row : view.rows)
        workers.push_back({{"name", row.name},
                           {"first_layer", row.layers.first},
                           {"layers", row.layers.count},
                           {"input", row.has_input},
                           {"output", row.has_output},
                           {"weight_bytes", row.weight_bytes},
                           {"state_bytes", row.state_bytes},
                           {"scratch_bytes", row.scratch_bytes},
                           {"memory_left_bytes", row.memory_left}});
    return {{"model", model},
            {"context", view.context},
            {"parallel", view.parallel},
            {"decode_tokens_per_second", view.decode_tokens_per_second},
            {"workers", std::move(workers)}};
}

Error plan(const PlanCommand& command) {
    ARTEL_TRY(check_model_options(command.model));
    ARTEL_ASSIGN(const cluster::ModelProfile model, read_profile(command.model));
    ARTEL_ASSIGN(const auto workers, command.cluster_file.empty()
                                         ? local_workers(command.model, model)
                                         : read_cluster_file(command.cluster_file));
    const cluster::PlanOutcome outcome = cluster::make_plan(model, workers,
                                                            {.context = command.model.context,
                                                             .parallel = command.parallel,
                                                             .chunk_rows = ClusterOptions{}.chunk,
                                                             .split = command.model.split});
    if (const auto* refusal = std::get_if<cluster::PlanRefusal>(&outcome))
        return failed_precondition("{}", refusal->message);
    const PlanView view = plan_view(std::get<cluster::Plan>(outcome), workers);
    if (!command.wants_json) return write_output(plan_table(view));
    return write_output(
        to_json(model.name, view).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

void add_plan_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("plan", "Show which worker would hold which layers");
    const auto options = std::make_shared<PlanCommand>();
    add_model_options(*command, options->model);
    command
        ->add_option("--cluster", options->cluster_file,
                     "File that describes the workers (default: this machine)")
        ->excludes(command->get_option("--local-workers"))
        ->excludes(command->get_option("--device"));
    command->add_option("--parallel", options->parallel, "Answers computed at the same time")
        ->check(CLI::Range(1U, 1024U))
        ->capture_default_str();
    command->add_flag("--json", options->wants_json, "Print JSON");
    command->callback([&run, options] { run = [options] { return plan(*options); }; });
}

}  // namespace artel::cli
