// SPDX-License-Identifier: Apache-2.0
#include "simulation/workload.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace artel::simulation {
namespace {

using protocol::StateKind;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kMiB = 1ULL << 20;

/// Small numbers often, large ones sometimes.
std::uint32_t skewed(Random& random, std::uint32_t low, std::uint32_t high) {
    const std::uint32_t top = random.chance(0.7) ? low + (high - low) / 4 : high;
    return static_cast<std::uint32_t>(random.between(low, top));
}

}  // namespace

cluster::ModelProfile draw_model(Random& random) {
    cluster::ModelProfile model;
    model.name = "hash";
    model.digest = {random.next() | 1, random.next()};
    model.architecture = "hash";
    model.formats = {"H16"};
    model.context_max = 4096;
    model.vocabulary_size = static_cast<std::uint32_t>(random.between(50, 50000));
    model.row_bytes = kHashRowBytes;
    model.scratch_bytes = kMiB;
    model.groups.push_back({StateKind::Paged, 0});
    if (random.chance(0.5))
        model.groups.push_back(
            {StateKind::Windowed, static_cast<std::uint32_t>(random.between(1, 200))});
    if (random.chance(0.3)) model.groups.push_back({StateKind::Slot, 0});
    const std::uint32_t layers = skewed(random, 1, 64);
    for (std::uint32_t i = 0; i < layers; ++i) {
        cluster::LayerProfile layer;
        layer.weight_bytes = kMiB * static_cast<std::uint64_t>(random.between(1, 40));
        layer.active_bytes = layer.weight_bytes / (1 + random.below(4));
        layer.flops_per_token = layer.active_bytes * 2;
        if (random.chance(0.85)) {
            const auto group = static_cast<std::uint32_t>(random.below(model.groups.size()));
            const bool is_slot = model.groups[group].kind == StateKind::Slot;
            layer.states.push_back(
                {group, is_slot ? 65536 : static_cast<std::uint64_t>(random.between(16, 512))});
        }
        model.layers.push_back(std::move(layer));
        model.file_bytes += model.layers.back().weight_bytes;
    }
    model.input = {.weight_bytes = kMiB * random.below(50),
                   .active_bytes = 1024,
                   .flops_per_token = 0,
                   .scratch_bytes = 0};
    model.output = {.weight_bytes = kMiB * random.below(50),
                    .active_bytes = 4 * kMiB,
                    .flops_per_token = 0,
                    .scratch_bytes = kMiB};
    if (random.chance(0.3))
        model.shared_end_bytes = std::min(model.input.weight_bytes, model.output.weight_bytes);
    return model;
}

std::vector<NodeSpec> draw_workers(Random& random, const cluster::ModelProfile& model,
                                   const cluster::PlanRequest& plan) {
    const auto count = static_cast<std::size_t>(random.between(1, 9));
    std::vector<NodeSpec> workers;
    const auto build = [&](double room) {
        workers.clear();
        const std::uint64_t total =
            model.file_bytes + model.input.weight_bytes + model.output.weight_bytes;
        for (std::size_t i = 0; i < count; ++i) {
            NodeSpec spec;
            spec.name = fmt::format("w{}", i);
            const double share = room * (0.3 + 1.4 * random.unit()) / static_cast<double>(count);
            spec.memory_bytes =
                64 * kMiB + static_cast<std::uint64_t>(share * static_cast<double>(total));
            spec.device.step_overhead = microseconds(random.between(50, 2000));
            spec.device.layer_row = microseconds(random.between(1, 200));
            spec.bandwidth_bytes_per_second =
                static_cast<std::uint64_t>(random.between(5, 500)) * 1'000'000'000;
            workers.push_back(std::move(spec));
        }
    };
    for (double room = 1.3; room < 100; room *= 1.5) {
        build(room);
        std::vector<cluster::WorkerProfile> profiles;
        for (const NodeSpec& spec : workers) {
            cluster::WorkerProfile profile;
            profile.node = protocol::node_id(spec.name);
            profile.name = spec.name;
            profile.machine_id = "machine-" + spec.name;
            profile.memory_bytes = spec.memory_bytes;
            profile.machine_memory_bytes = spec.memory_bytes;
            profile.bandwidth_bytes_per_second = spec.bandwidth_bytes_per_second;
            profile.flops_per_second = 1'000'000'000'000;
            profiles.push_back(std::move(profile));
        }
        if (std::holds_alternative<cluster::Plan>(cluster::make_plan(model, profiles, plan))) break;
    }
    return workers;
}

std::vector<TimedRequest> draw_requests(Random& random, const cluster::ModelProfile& model,
                                        std::uint32_t context, Duration span) {
    std::vector<TimedRequest> requests;
    const auto count = static_cast<std::uint32_t>(random.between(2, 30));
    for (std::uint32_t i = 0; i < count; ++i) {
        TimedRequest timed;
        timed.at = Duration(
            static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(span.count()))));
        const std::uint32_t prompt = skewed(random, 1, std::max(2U, context - context / 4));
        for (std::uint32_t t = 0; t < prompt; ++t)
            timed.request.prompt.push_back(
                static_cast<protocol::TokenId>(random.below(model.vocabulary_size)));
        timed.request.max_tokens = skewed(random, 1, std::max(2U, context / 4));
        timed.request.choices =
            random.chance(0.15) ? static_cast<std::uint32_t>(random.between(2, 4)) : 1;
        timed.request.sampling.seed = random.next();
        if (random.chance(0.5))
            timed.request.end_tokens = {
                static_cast<protocol::TokenId>(random.below(model.vocabulary_size))};
        if (random.chance(0.3)) timed.cancel_after = milliseconds(random.below(2000));
        requests.push_back(std::move(timed));
    }
    return requests;
}

}  // namespace artel::simulation
