// SPDX-License-Identifier: Apache-2.0
#include "simulation/checkers.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace artel::simulation {
namespace {

using cluster::FinishReason;

/// How long after a cancel the end must have come: a step may take a while on a slow worker.
constexpr Duration kCancelPatience = std::chrono::seconds(10);

std::vector<protocol::TokenId> truth(const Simulator& simulator, const ClientRequest& client,
                                     std::uint32_t choice, std::uint32_t count) {
    protocol::SamplingParameters parameters = client.request.sampling;
    parameters.choice = choice;
    return HashOracle(simulator.options().model, parameters).generate(client.request.prompt, count);
}

void check_plan_coverage(Simulator& simulator) {
    if (!simulator.is_serving()) return;
    const cluster::Coordinator& coordinator = *simulator.coordinator();
    std::vector<int> holders(simulator.options().model.layers.size());
    for (std::size_t node = 1; node <= simulator.worker_count(); ++node) {
        const cluster::Worker* const worker = simulator.worker(node);
        if (worker == nullptr || !worker->assignment() ||
            worker->assignment()->epoch != coordinator.epoch())
            continue;
        const protocol::LayerRange layers = worker->assignment()->layers;
        for (std::uint32_t layer = layers.first; layer < layers.end() && layer < holders.size();
             ++layer)
            ++holders[layer];
    }
    for (std::size_t layer = 0; layer < holders.size(); ++layer) {
        // A worker that has just crashed may not have been missed yet; two holders are never right.
        if (holders[layer] > 1)
            simulator.violation(
                fmt::format("layer {} is held by {} workers", layer, holders[layer]));
    }
}

void check_cancels(Simulator& simulator) {
    for (std::size_t i = 0; i < simulator.request_count(); ++i) {
        const ClientRequest& client = simulator.request(i);
        if (!client.cancelled_at || client.is_over() || simulator.coordinator() == nullptr)
            continue;
        if (simulator.queue().now() - *client.cancelled_at > kCancelPatience)
            simulator.violation(
                fmt::format("request {} was cancelled and did not end", client.id.value));
    }
}

}  // namespace

void check_always(Simulator& simulator) {
    check_plan_coverage(simulator);
    check_cancels(simulator);
    if (simulator.coordinator() == nullptr) return;
    const cluster::Health health = simulator.coordinator()->health();
    const cluster::Limits& limits = simulator.options().limits;
    if (health.requests_queued > limits.queued_requests)
        simulator.violation(fmt::format("{} requests are queued; the limit is {}",
                                        health.requests_queued, limits.queued_requests));
    if (simulator.coordinator()->steps_in_flight() > cluster::kStepsInFlightMax)
        simulator.violation(
            fmt::format("{} steps are in flight", simulator.coordinator()->steps_in_flight()));
}

void check_answers(Simulator& simulator, bool may_fail) {
    for (std::size_t i = 0; i < simulator.request_count(); ++i) {
        const ClientRequest& client = simulator.request(i);
        if (client.failed && !may_fail)
            simulator.violation(fmt::format("request {} failed ({}) though nothing was lost",
                                            client.id.value, client.failed->message));
        for (std::uint32_t choice = 0; choice < client.request.choices; ++choice) {
            const auto& tokens = client.tokens[choice];
            const auto expected =
                truth(simulator, client, choice, static_cast<std::uint32_t>(tokens.size()));
            if (tokens != expected) {
                const auto at =
                    std::mismatch(tokens.begin(), tokens.end(), expected.begin()).first -
                    tokens.begin();
                simulator.violation(
                    fmt::format("request {} choice {}: token {} is {}, the oracle's is {}",
                                client.id.value, choice, at, tokens[static_cast<std::size_t>(at)],
                                expected[static_cast<std::size_t>(at)]));
                continue;
            }
            if (client.was_orphaned || !client.finished[choice]) continue;
            const auto& ends = client.request.end_tokens;
            const auto is_end = [&](protocol::TokenId token) {
                return std::find(ends.begin(), ends.end(), token) != ends.end();
            };
            const auto first_end = std::find_if(tokens.begin(), tokens.end(), is_end);
            if (first_end != tokens.end() && first_end + 1 != tokens.end())
                simulator.violation(
                    fmt::format("request {}: tokens after the end", client.id.value));
            if (*client.finished[choice] == FinishReason::Stop && first_end == tokens.end())
                simulator.violation(
                    fmt::format("request {}: stopped without an end token", client.id.value));
            if (*client.finished[choice] == FinishReason::Length &&
                tokens.size() != client.request.max_tokens)
                simulator.violation(fmt::format("request {}: {} tokens, {} wanted", client.id.value,
                                                tokens.size(), client.request.max_tokens));
        }
    }
}

void check_healed(Simulator& simulator) {
    if (!simulator.is_serving()) {
        const std::string message = simulator.coordinator()
                                        ? simulator.coordinator()->health().message
                                        : "coordinator down";
        return simulator.violation("the cluster does not serve after healing: " + message);
    }
    for (std::size_t i = 0; i < simulator.request_count(); ++i)
        if (!simulator.request(i).is_over())
            simulator.violation(
                fmt::format("request {} never ended", simulator.request(i).id.value));
    const cluster::PageTables& pages = simulator.coordinator()->page_tables();
    for (std::size_t group = 0; group < pages.group_count(); ++group)
        if (pages.pages_in_use(group) != 0)
            simulator.violation(fmt::format("{} pages of group {} are still in use",
                                            pages.pages_in_use(group), group));
    if (simulator.coordinator()->steps_in_flight() != 0)
        simulator.violation(fmt::format("{} steps are still in flight",
                                        simulator.coordinator()->steps_in_flight()));
}

}  // namespace artel::simulation
