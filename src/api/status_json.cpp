// SPDX-License-Identifier: Apache-2.0
#include "api/status_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "api/json_document.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

std::string_view worker_state(const cluster::WorkerHealth& worker) {
    if (!worker.is_connected) return "lost";
    if (worker.is_ready) return "ready";
    return worker.load_bytes_total > 0 ? "loading" : "waiting";
}

Json to_json(const cluster::WorkerHealth& worker) {
    return {{"name", worker.name},
            {"node", fmt::format("{:016x}", worker.node.value)},
            {"state", worker_state(worker)},
            {"status", worker.status},
            {"device", worker.arithmetic_class},
            {"layers", {{"first", worker.layers.first}, {"count", worker.layers.count}}},
            {"has_input", worker.has_input},
            {"has_output", worker.has_output},
            {"weight_bytes", worker.weight_bytes},
            {"state_bytes", worker.state_bytes},
            {"scratch_bytes", worker.scratch_bytes},
            {"memory_bytes", worker.memory_bytes},
            {"load_bytes_done", worker.load_bytes_done},
            {"load_bytes_total", worker.load_bytes_total}};
}

}  // namespace

std::string_view state_name(cluster::ServiceState state) {
    switch (state) {
        case cluster::ServiceState::WaitingForWorkers:
            return "waiting_for_workers";
        case cluster::ServiceState::Loading:
            return "loading";
        case cluster::ServiceState::WarmingUp:
            return "warming_up";
        case cluster::ServiceState::Serving:
            return "ok";
        case cluster::ServiceState::Draining:
            return "draining";
        case cluster::ServiceState::Stopped:
            return "stopped";
    }
    return "unknown";
}

std::string to_health_json(const cluster::Health& health, std::string_view model) {
    Json body{{"status", state_name(health.state)}};
    if (health.state == cluster::ServiceState::Serving) {
        body["model"] = model;
        body["workers"] = health.workers.size();
        return to_text(body);
    }
    body["message"] = health.message;
    for (const cluster::LayerRange& range : health.missing_layers)
        body["missing_layers"].push_back({{"first", range.first}, {"count", range.count}});
    if (health.missing_bytes > 0) body["missing_bytes"] = health.missing_bytes;
    return to_text(body);
}

std::string to_cluster_json(const cluster::Health& health, std::string_view model) {
    Json workers = Json::array();
    for (const cluster::WorkerHealth& worker : health.workers) workers.push_back(to_json(worker));
    return to_text(
        {{"object", "cluster"},
         {"model", model},
         {"state", state_name(health.state)},
         {"message", health.message},
         {"epoch", {{"term", health.epoch.term}, {"number", health.epoch.number}}},
         {"context", health.context},
         {"parallel", health.parallel},
         {"predicted_tokens_per_second", health.decode_tokens_per_second},
         {"requests", {{"queued", health.requests_queued}, {"running", health.requests_running}}},
         {"steps_done", health.steps_done},
         {"workers", std::move(workers)}});
}

}  // namespace artel::api
