// SPDX-License-Identifier: Apache-2.0
#include "cluster/profile.hpp"

#include <algorithm>

namespace artel::cluster {

namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// Empty, or why `model` cannot run there.
std::string unusable_because(const protocol::WorkerReport& report, const ModelProfile& model) {
    if (report.devices.empty()) return "it reports no device";
    if (!contains(report.architectures, model.architecture))
        return fmt::format("its build does not know the architecture {}", model.architecture);
    for (const std::string& format : model.formats)
        if (!contains(report.formats, format))
            return fmt::format("its build cannot read weights of format {}", format);
    return "";
}

}  // namespace

WorkerProfile worker_profile(const protocol::WorkerReport& report, const ModelProfile& model) {
    WorkerProfile profile;
    profile.node = protocol::node_id(report.name);
    profile.name = report.name;
    profile.machine_id = report.machine_id;
    profile.machine_memory_bytes = report.machine_memory_bytes;
    profile.unusable = unusable_because(report, model);
    if (report.devices.empty()) return profile;
    const protocol::DeviceReport& device = report.devices.front();
    profile.memory_bytes = device.memory_bytes;
    profile.bandwidth_bytes_per_second = device.bandwidth_bytes_per_second;
    profile.flops_per_second = device.flops_per_second;
    profile.arithmetic_class = device.arithmetic_class;
    return profile;
}

void even_out_twins(std::vector<WorkerProfile>& workers) {
    const auto are_twins = [](const WorkerProfile& a, const WorkerProfile& b) {
        return !a.machine_id.empty() && a.machine_id == b.machine_id &&
               a.flops_per_second == b.flops_per_second && a.arithmetic_class == b.arithmetic_class;
    };
    for (WorkerProfile& worker : workers)
        for (const WorkerProfile& other : workers)
            if (are_twins(worker, other))
                worker.bandwidth_bytes_per_second =
                    std::max(worker.bandwidth_bytes_per_second, other.bandwidth_bytes_per_second);
}

}  // namespace artel::cluster
