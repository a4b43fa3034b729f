// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_table.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/byte_count.hpp"

namespace artel::cli {
namespace {

std::string layers_of(const PlanRow& row) {
    std::string text = row.layers.count == 0
                           ? std::string("-")
                           : fmt::format("{}-{}", row.layers.first, row.layers.end() - 1);
    if (row.has_input) text = "input " + text;
    if (row.has_output) text += " output";
    return text;
}

bool is_spare(const cluster::Plan& plan, const cluster::WorkerProfile& worker) {
    return std::find(plan.spares.begin(), plan.spares.end(), worker.node) != plan.spares.end();
}

}  // namespace

PlanView plan_view(const cluster::Health& health) {
    PlanView view{.rows = {},
                  .context = health.context,
                  .parallel = health.parallel,
                  .decode_tokens_per_second = health.decode_tokens_per_second};
    for (const cluster::WorkerHealth& worker : health.workers) {
        const std::uint64_t used = worker.weight_bytes + worker.state_bytes + worker.scratch_bytes;
        view.rows.push_back(
            {.name = worker.name,
             .layers = worker.layers,
             .has_input = worker.has_input,
             .has_output = worker.has_output,
             .weight_bytes = worker.weight_bytes,
             .state_bytes = worker.state_bytes,
             .scratch_bytes = worker.scratch_bytes,
             .memory_left = worker.memory_bytes - std::min(used, worker.memory_bytes)});
    }
    return view;
}

PlanView plan_view(const cluster::Plan& plan, const std::vector<cluster::WorkerProfile>& workers) {
    PlanView view{.rows = {},
                  .context = plan.context,
                  .parallel = plan.parallel,
                  .decode_tokens_per_second = plan.decode_tokens_per_second};
    for (const cluster::PlanStage& stage : plan.stages)
        view.rows.push_back({.name = stage.name,
                             .layers = stage.layers,
                             .has_input = stage.has_input,
                             .has_output = stage.has_output,
                             .weight_bytes = stage.weight_bytes,
                             .state_bytes = stage.state_bytes,
                             .scratch_bytes = stage.scratch_bytes,
                             .memory_left = stage.memory_left});
    for (const cluster::WorkerProfile& worker : workers) {
        if (!is_spare(plan, worker)) continue;
        PlanRow row;
        row.name = worker.name;
        row.memory_left = worker.memory_bytes;
        view.rows.push_back(std::move(row));
    }
    return view;
}

std::string plan_table(const PlanView& view) {
    std::string table = fmt::format("{:<16} {:<22} {:>10} {:>10} {:>11}\n", "worker", "layers",
                                    "weights", "state", "memory left");
    for (const PlanRow& row : view.rows)
        table +=
            fmt::format("{:<16} {:<22} {:>10} {:>10} {:>11}\n", row.name, layers_of(row),
                        format_byte_count(row.weight_bytes), format_byte_count(row.state_bytes),
                        format_byte_count(row.memory_left));
    table +=
        fmt::format("context {} tokens, {} answers at a time, predicted {:.1f} tokens/s for one\n",
                    view.context, view.parallel, view.decode_tokens_per_second);
    return table;
}

}  // namespace artel::cli
