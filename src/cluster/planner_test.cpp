// SPDX-License-Identifier: Apache-2.0
// The planner's laws, on random models and machines against brute force, and its words for people.
#include "cluster/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/random.hpp"
#include "cluster/plan_costs.hpp"

namespace artel::cluster {
namespace {

using protocol::StateKind;
using ::testing::HasSubstr;

ModelProfile random_model(Random& random, std::uint32_t layers_max) {
    ModelProfile model;
    model.name = "m";
    model.groups = {{StateKind::Paged, 0}, {StateKind::Slot, 0}};
    const std::uint64_t layers = 1 + random.below(layers_max);
    for (std::uint64_t i = 0; i < layers; ++i) {
        LayerProfile layer;
        layer.weight_bytes = 1 + random.below(2000);
        layer.active_bytes = 1 + random.below(layer.weight_bytes);
        layer.flops_per_token = random.below(3000);
        if (random.chance(0.7)) layer.states.push_back({0, random.below(4)});
        if (random.chance(0.3)) layer.states.push_back({1, random.below(300)});
        model.layers.push_back(layer);
    }
    model.input = {random.below(3000), random.below(50), 0, random.below(20)};
    model.output = {random.below(3000), random.below(3000), random.below(3000), random.below(90)};
    if (random.chance(0.5)) {
        model.output.weight_bytes = model.input.weight_bytes;
        model.shared_end_bytes = model.input.weight_bytes;
    }
    model.scratch_bytes = random.below(100);
    model.context_max = 64 * static_cast<std::uint32_t>(1 + random.below(8));
    model.vocabulary_size = 100;
    return model;
}

std::vector<WorkerProfile> random_workers(Random& random, std::size_t count, std::uint64_t most) {
    std::vector<WorkerProfile> workers;
    for (std::size_t i = 0; i < count; ++i) {
        WorkerProfile worker;
        worker.node = NodeId{i + 1};
        worker.name = std::string(1, static_cast<char>('a' + i));
        worker.memory_bytes = random.below(most);
        worker.bandwidth_bytes_per_second = 1000 + random.below(100000);
        worker.flops_per_second = 1000 + random.below(100000);
        worker.hop_ns = random.below(1000);
        if (random.chance(0.3)) {
            worker.machine_id = "shared";
            worker.machine_memory_bytes = most / 2;
        }
        if (random.chance(0.1)) worker.unusable = "it is old";
        workers.push_back(worker);
    }
    return workers;
}

/// Workers of one machine next to each other, as rule 3 says; bandwidth shared by its usable ones.
std::vector<WorkerProfile> in_plan_order(const std::vector<WorkerProfile>& workers) {
    std::vector<WorkerProfile> order;
    std::uint64_t sharers = 0;
    for (const auto& worker : workers)
        sharers += worker.machine_id == "shared" && worker.unusable.empty() ? 1 : 0;
    bool has_shared = false;
    for (const auto& worker : workers) {
        if (worker.machine_id.empty()) order.push_back(worker);
        if (worker.machine_id.empty() || has_shared) continue;
        has_shared = true;
        for (const auto& other : workers)
            if (!other.machine_id.empty()) order.push_back(other);
    }
    for (auto& worker : order)
        if (!worker.machine_id.empty() && sharers > 0) worker.bandwidth_bytes_per_second /= sharers;
    return order;
}

/// The fastest slowest stage of all cuts that fit, by trying every one; kNever: none fits.
std::uint64_t brute_force(const ModelProfile& model, const std::vector<WorkerProfile>& given,
                          const std::vector<std::uint32_t>& page_counts) {
    const std::vector<WorkerProfile> workers = in_plan_order(given);
    const PlanCosts costs(model, page_counts);
    const std::uint32_t layers = costs.layer_count();
    std::uint64_t best = kNever;
    std::function<void(std::size_t, std::uint32_t, std::uint64_t, std::uint64_t)> place =
        [&](std::size_t i, std::uint32_t first, std::uint64_t slowest, std::uint64_t shared) {
            if (first == layers) best = std::min(best, slowest);
            if (i == workers.size() || first == layers) return;
            place(i + 1, first, slowest, shared);
            if (!workers[i].unusable.empty()) return;
            for (std::uint32_t end = first + 1; end <= layers; ++end) {
                const StageParts parts{{first, end - first}, first == 0, end == layers};
                const std::uint64_t bytes = costs.total_bytes(parts);
                const bool is_shared = !workers[i].machine_id.empty();
                const std::uint64_t together = shared + (is_shared ? bytes : 0);
                if (bytes > workers[i].memory_bytes ||
                    (is_shared && together > workers[i].machine_memory_bytes))
                    continue;
                place(i + 1, end, std::max(slowest, costs.decode_ns(parts, workers[i])), together);
            }
        };
    place(0, 0, 0, 0);
    return best;
}

std::vector<std::uint32_t> pages_for(const ModelProfile& model, std::uint32_t context,
                                     std::uint32_t parallel) {
    std::vector<std::uint32_t> counts;
    for (const auto& group : model.groups)
        counts.push_back(parallel * pages_per_sequence(group, context, 512, 1));
    return counts;
}

std::uint64_t slowest_ns(const Plan& plan) {
    std::uint64_t slowest = 0;
    for (const auto& stage : plan.stages) slowest = std::max(slowest, stage.decode_ns);
    return slowest;
}

void expect_sound(const Plan& plan, const ModelProfile& model,
                  const std::vector<WorkerProfile>& workers) {
    std::map<NodeId, WorkerProfile> by_node;
    for (const auto& worker : workers) by_node[worker.node] = worker;
    std::map<std::string, std::uint64_t> machine_bytes;
    std::uint32_t next = 0;
    for (const auto& stage : plan.stages) {
        EXPECT_EQ(stage.layers.first, next);
        next = stage.layers.end();
        const WorkerProfile& worker = by_node.at(stage.node);
        EXPECT_LE(stage.total_bytes(), worker.memory_bytes);
        EXPECT_EQ(stage.memory_left, worker.memory_bytes - stage.total_bytes());
        EXPECT_TRUE(worker.unusable.empty());
        EXPECT_EQ(stage.has_input, &stage == &plan.stages.front());
        EXPECT_EQ(stage.has_output, &stage == &plan.stages.back());
        machine_bytes[worker.machine_id] += stage.total_bytes();
        if (!worker.machine_id.empty()) {
            EXPECT_LE(machine_bytes[worker.machine_id], worker.machine_memory_bytes);
        }
    }
    EXPECT_EQ(next, model.layers.size());
    EXPECT_EQ(plan.stages.size() + plan.spares.size(), workers.size());
}

TEST(Planner, FitsExactlyWhenBruteForceDoesAndIsAsFast) {
    Random random(1);
    int fits = 0;
    int refusals = 0;
    for (int round = 0; round < 3000; ++round) {
        const ModelProfile model = random_model(random, 7);
        const auto workers = random_workers(random, 1 + random.below(4), 9000);
        PlanRequest request;
        request.context = static_cast<std::uint32_t>(1 + random.below(model.context_max));
        request.parallel = static_cast<std::uint32_t>(1 + random.below(3));
        const std::uint64_t best =
            brute_force(model, workers, pages_for(model, request.context, request.parallel));
        const PlanOutcome outcome = make_plan(model, workers, request);
        const Plan* plan = std::get_if<Plan>(&outcome);
        ASSERT_EQ(plan != nullptr, best != kNever) << "round " << round;
        if (plan == nullptr) {
            ++refusals;
            EXPECT_GT(std::get<PlanRefusal>(outcome).missing_bytes, 0U);
            continue;
        }
        ++fits;
        EXPECT_EQ(slowest_ns(*plan), best) << "round " << round;
        expect_sound(*plan, model, workers);
    }
    EXPECT_GT(fits, 500);
    EXPECT_GT(refusals, 500);
}

TEST(Planner, TheMissingBytesAreEnoughAndOneLessIsNot) {
    Random random(2);
    for (int round = 0; round < 300; ++round) {
        const ModelProfile model = random_model(random, 8);
        auto workers = random_workers(random, 1 + random.below(3), 4000);
        PlanRequest request;
        request.context = model.context_max;
        const PlanOutcome outcome = make_plan(model, workers, request);
        const auto* refusal = std::get_if<PlanRefusal>(&outcome);
        if (refusal == nullptr) continue;
        WorkerProfile extra;
        extra.node = NodeId{99};
        extra.memory_bytes = refusal->missing_bytes;
        workers.push_back(extra);
        EXPECT_TRUE(std::holds_alternative<Plan>(make_plan(model, workers, request)));
        --workers.back().memory_bytes;
        EXPECT_FALSE(std::holds_alternative<Plan>(make_plan(model, workers, request)));
    }
}

TEST(Planner, OneMoreMachineNeverMakesItSlower) {
    Random random(3);
    for (int round = 0; round < 500; ++round) {
        const ModelProfile model = random_model(random, 12);
        auto workers = random_workers(random, 1 + random.below(4), 12000);
        const PlanOutcome before = make_plan(model, workers, {.context = 64});
        WorkerProfile extra = random_workers(random, 1, 9000)[0];
        extra.node = NodeId{99};
        extra.machine_id.clear();
        workers.insert(workers.begin() + static_cast<long>(random.below(workers.size() + 1)),
                       extra);
        const PlanOutcome after = make_plan(model, workers, {.context = 64});
        if (const Plan* plan = std::get_if<Plan>(&before)) {
            ASSERT_TRUE(std::holds_alternative<Plan>(after));
            EXPECT_LE(slowest_ns(std::get<Plan>(after)), slowest_ns(*plan));
        }
    }
}

TEST(Planner, WithoutAContextItTakesTheLargestThatFits) {
    Random random(4);
    int smaller = 0;
    for (int round = 0; round < 300; ++round) {
        const ModelProfile model = random_model(random, 6);
        const auto workers = random_workers(random, 3, 12000);
        const PlanOutcome outcome = make_plan(model, workers, {});
        const Plan* plan = std::get_if<Plan>(&outcome);
        if (plan == nullptr) continue;
        if (plan->context == model.context_max) continue;
        ++smaller;
        EXPECT_FALSE(std::holds_alternative<Plan>(
            make_plan(model, workers, {.context = plan->context + 1})));
    }
    EXPECT_GT(smaller, 10);
}

ModelProfile even_model(std::uint32_t layers) {
    ModelProfile model;
    model.name = "even";
    model.groups = {{StateKind::Paged, 0}};
    for (std::uint32_t i = 0; i < layers; ++i) model.layers.push_back({1000, 1000, 0, {{0, 1}}});
    model.context_max = 640;
    model.vocabulary_size = 10;
    return model;
}

std::vector<WorkerProfile> even_workers(std::size_t count, std::uint64_t memory) {
    std::vector<WorkerProfile> workers;
    for (std::size_t i = 0; i < count; ++i) {
        WorkerProfile worker;
        worker.node = NodeId{i + 1};
        worker.name = std::string(1, static_cast<char>('a' + i));
        worker.memory_bytes = memory;
        worker.bandwidth_bytes_per_second = 1'000'000;
        worker.flops_per_second = 1'000'000;
        workers.push_back(worker);
    }
    return workers;
}

std::vector<std::uint32_t> shares(const PlanOutcome& outcome) {
    std::vector<std::uint32_t> counts;
    if (const Plan* plan = std::get_if<Plan>(&outcome))
        for (const auto& stage : plan->stages) counts.push_back(stage.layers.count);
    return counts;
}

TEST(Planner, SplitsEvenWorkEvenlyAndBySpeed) {
    auto workers = even_workers(3, 1U << 20U);
    EXPECT_EQ(shares(make_plan(even_model(30), workers, {})), (std::vector{10U, 10U, 10U}));
    workers[1].bandwidth_bytes_per_second *= 4;
    EXPECT_EQ(shares(make_plan(even_model(30), workers, {})), (std::vector{5U, 20U, 5U}));
}

TEST(Planner, ALargeVocabularyTakesLayersFromTheEnds) {
    ModelProfile model = even_model(30);
    model.output.weight_bytes = model.output.active_bytes = 9000;
    EXPECT_EQ(shares(make_plan(model, even_workers(3, 1U << 20U), {})),
              (std::vector{13U, 13U, 4U}));
}

TEST(Planner, ObeysAnExplicitSplitOrSaysWhyNot) {
    const ModelProfile model = even_model(10);
    const auto workers = even_workers(3, 1U << 20U);
    const auto plan = [&](std::vector<std::uint32_t> split) {
        return make_plan(model, workers, {.split = std::move(split)});
    };
    const auto why = [&](std::vector<std::uint32_t> split) {
        const PlanOutcome outcome = plan(std::move(split));
        const auto* refusal = std::get_if<PlanRefusal>(&outcome);
        return refusal == nullptr ? std::string("it was not refused") : refusal->message;
    };
    EXPECT_EQ(shares(plan({1, 8, 1})), (std::vector{1U, 8U, 1U}));
    EXPECT_EQ(shares(plan({0, 10, 0})), (std::vector{0U, 10U, 0U}));
    EXPECT_EQ(shares(plan({5, 0, 5})), (std::vector{5U, 5U}));
    EXPECT_THAT(why({5, 5}), HasSubstr("names 2 workers, 3 are there"));
    EXPECT_THAT(why({5, 5, 0, 0}), HasSubstr("names 4 workers"));
    EXPECT_THAT(why({5, 5, 5}), HasSubstr("15 layers in all, the model 10"));
    EXPECT_THAT(why({4294967295U, 11, 0}), HasSubstr("layers in all"));
}

TEST(Planner, ASplitThatDoesNotFitNamesWorkerLayersAndBytes) {
    const ModelProfile model = even_model(10);  // 1,000 bytes a layer, and 1 a position
    const PlanOutcome outcome =
        make_plan(model, even_workers(2, 6000), {.context = 64, .parallel = 1, .split = {2, 8}});
    const auto& refusal = std::get<PlanRefusal>(outcome);
    EXPECT_EQ(refusal.missing_bytes, 8000U + 8 * 64 - 6000U);
    EXPECT_THAT(refusal.message, HasSubstr("worker b (layers 2 to 9, the output)"));
    EXPECT_THAT(refusal.message, HasSubstr("are missing"));
    const PlanOutcome too_long =
        make_plan(model, even_workers(2, 6000), {.context = 640, .parallel = 1, .split = {5, 5}});
    const auto& shorter = std::get<PlanRefusal>(too_long);
    EXPECT_EQ(shorter.context_that_fits, 192U);
    EXPECT_THAT(shorter.message, HasSubstr("worker a (layers 0 to 4, the input)"));
}

TEST(Planner, RefusesWithBothNumbersAndAContextThatFits) {
    const ModelProfile model = even_model(10);  // 10,000 bytes and 10 a position
    const PlanOutcome outcome =
        make_plan(model, even_workers(2, 6000), {.context = 640, .parallel = 1});
    const auto& refusal = std::get<PlanRefusal>(outcome);
    EXPECT_EQ(refusal.needed_bytes, 16400U);
    EXPECT_EQ(refusal.available_bytes, 12000U);
    EXPECT_EQ(refusal.context_that_fits, 192U);  // 5 layers: 5000 + 5 * 192 <= 6000
    EXPECT_THAT(refusal.message, HasSubstr("or a context of 192"));
    const auto too_long = make_plan(model, even_workers(2, 6000), {.context = 641});
    EXPECT_THAT(std::get<PlanRefusal>(too_long).message, HasSubstr("the model's is 640"));
    EXPECT_THAT(std::get<PlanRefusal>(make_plan(model, {}, {})).message, HasSubstr("no worker"));
}

TEST(Planner, ShowsUnusableWorkers) {
    auto workers = even_workers(2, 11000);
    workers[1].unusable = "its build does not know the architecture";
    const auto outcome = make_plan(even_model(20), workers, {.context = 64});
    EXPECT_THAT(std::get<PlanRefusal>(outcome).message, HasSubstr("b is not used: its build"));
}

TEST(Planner, AWindowedGroupKeepsTheWindowAndTheChunksInFlight) {
    const GroupProfile window{StateKind::Windowed, 512};
    EXPECT_EQ(pages_per_sequence(window, 32768, 64, 3), (512 + 4 * 64) / 64 + 1);
    EXPECT_EQ(pages_per_sequence(window, 128, 64, 3), 2U);
    EXPECT_EQ(pages_per_sequence({StateKind::Paged, 0}, 65, 64, 3), 2U);
    EXPECT_EQ(pages_per_sequence({StateKind::Slot, 0}, 32768, 64, 3), 1U);
}

TEST(Planner, GiantNumbersDoNotWrap) {
    ModelProfile model = even_model(4);
    model.layers[2].weight_bytes = ~0ULL;
    model.layers[3].states[0].bytes = ~0ULL / 2;
    EXPECT_TRUE(std::holds_alternative<PlanRefusal>(
        make_plan(model, even_workers(2, ~0ULL - 1), {.context = 640})));
}

// limits.md, section 7: the planner's figure for published rigs, from the same inputs.
TEST(Planner, PredictsThePublishedRigs) {
    ModelProfile model = even_model(60);  // a 19 GB a token model on three Strix Halo, eta 0.62
    for (auto& layer : model.layers) layer = {22'300'000'000 / 60, 22'300'000'000 / 60, 0, {}};
    auto workers = even_workers(3, 120'000'000'000);
    for (auto& worker : workers) {
        worker.bandwidth_bytes_per_second = 256'000'000'000ULL * 62 / 100;
        worker.flops_per_second = 10'000'000'000'000;
        worker.hop_ns = 300'000;
    }
    const auto outcome = make_plan(model, workers, {.context = 640});
    const Plan& plan = std::get<Plan>(outcome);
    EXPECT_NEAR(plan.decode_tokens_per_second, 7.1, 0.2);
    EXPECT_NEAR(plan.decode_tokens_per_second_max, 21.2, 0.6);
}

TEST(Planner, TwoHundredLayersOnSixteenWorkersTakeNoTime) {
    Random random(9);
    ModelProfile model = even_model(200);
    for (auto& layer : model.layers)
        layer.active_bytes = layer.weight_bytes = 1 + random.below(5000);
    const auto workers = random_workers(random, 16, 400000);
    const auto outcome = make_plan(model, workers, {});
    if (const Plan* plan = std::get_if<Plan>(&outcome)) expect_sound(*plan, model, workers);
}

}  // namespace
}  // namespace artel::cluster
