// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_table.hpp"

#include <fmt/core.h>

#include "base/byte_count.hpp"

namespace artel::cli {
namespace {

std::string layers_of(const cluster::WorkerHealth& worker) {
    std::string text = worker.layers.count == 0
                           ? std::string("-")
                           : fmt::format("{}-{}", worker.layers.first, worker.layers.end() - 1);
    if (worker.has_input) text = "input " + text;
    if (worker.has_output) text += " output";
    return text;
}

}  // namespace

std::string plan_table(const cluster::Health& health) {
    std::string table = fmt::format("{:<16} {:<22} {:>10} {:>10} {:>10}\n", "worker", "layers",
                                    "weights", "state", "may use");
    for (const cluster::WorkerHealth& worker : health.workers)
        table += fmt::format("{:<16} {:<22} {:>10} {:>10} {:>10}\n", worker.name, layers_of(worker),
                             format_byte_count(worker.weight_bytes),
                             format_byte_count(worker.state_bytes),
                             format_byte_count(worker.memory_bytes));
    table +=
        fmt::format("context {} tokens, {} answers at a time, predicted {:.1f} tokens/s for one\n",
                    health.context, health.parallel, health.decode_tokens_per_second);
    return table;
}

}  // namespace artel::cli
