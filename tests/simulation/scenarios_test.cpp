// SPDX-License-Identifier: Apache-2.0
// Named scenarios: one fault at a known moment, and what a client must see.
#include <gtest/gtest.h>

#include "simulation/checkers.hpp"

namespace artel::simulation {
namespace {

using cluster::FinishReason;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1ULL << 20;

SimulatorOptions three_workers() {
    SimulatorOptions options;
    options.model.name = options.model.architecture = "hash";
    options.model.digest = {1, 2};
    options.model.formats = {"H16"};
    options.model.context_max = 1024;
    options.model.vocabulary_size = 1000;
    options.model.row_bytes = kHashRowBytes;
    options.model.groups = {{protocol::StateKind::Paged, 0}, {protocol::StateKind::Windowed, 100}};
    for (std::uint32_t i = 0; i < 12; ++i)
        options.model.layers.push_back({.weight_bytes = 10 * kMiB,
                                        .active_bytes = kMiB,
                                        .flops_per_token = kMiB,
                                        .states = {{i % 2, 64}}});
    options.model.file_bytes = 120 * kMiB;
    options.plan = {.context = 512, .parallel = 4, .chunk_rows = 32, .split = {}};
    options.limits.sequences = 4;
    options.limits.chunk_rows = 32;
    for (const char* name : {"a", "b", "c"})
        options.workers.push_back({name, 100 * kMiB, {}, 50'000'000'000});
    return options;
}

cluster::Request request(std::uint32_t prompt, std::uint32_t tokens, std::uint64_t seed = 7) {
    cluster::Request made;
    for (std::uint32_t i = 0; i < prompt; ++i)
        made.prompt.push_back((i * 37 + static_cast<std::uint32_t>(seed)) % 1000);
    made.max_tokens = tokens;
    made.sampling.seed = seed;
    return made;
}

class Scenario : public testing::Test {
  protected:
    explicit Scenario(SimulatorOptions options = three_workers()) : sim(std::move(options)) {}
    void SetUp() override {
        ASSERT_TRUE(sim.run_until([this] { return sim.is_serving(); }, seconds(30)));
    }
    bool wait_over(std::size_t index, Duration patience = seconds(60)) {
        return sim.run_until([&] { return sim.request(index).is_over(); }, patience);
    }
    void expect_clean() {
        sim.run_until([this] { return sim.is_serving(); }, seconds(60));
        sim.run_for(seconds(1));
        check_healed(sim);
        check_answers(sim, true);
        for (const std::string& violation : sim.violations()) ADD_FAILURE() << violation;
    }
    Simulator sim;
};

TEST_F(Scenario, ARequestGivesTheOraclesTokens) {
    const auto one = sim.submit(request(100, 50));
    ASSERT_TRUE(wait_over(one));
    EXPECT_EQ(sim.request(one).finished[0], FinishReason::Length);
    EXPECT_EQ(sim.request(one).tokens[0].size(), 50u);
    expect_clean();
}

TEST_F(Scenario, SeveralStepsAreInFlightWhenSeveralRequestsDecode) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) sim.submit(request(10, 200, seed));
    std::size_t most = 0;
    for (int i = 0; i < 200; ++i) {
        sim.run_for(milliseconds(1));
        most = std::max(most, sim.coordinator()->steps_in_flight());
    }
    EXPECT_GE(most, 3u) << "three stages should be kept busy";
    expect_clean();
}

TEST_F(Scenario, AWorkerThatDiesMidDecodeFailsItsRequestsAndServiceReturns) {
    const auto one = sim.submit(request(50, 400));
    ASSERT_TRUE(sim.run_until([&] { return sim.request(one).tokens[0].size() > 20; }, seconds(30)));
    sim.crash(2, true);
    ASSERT_TRUE(wait_over(one, seconds(10)));
    ASSERT_TRUE(sim.request(one).failed);
    EXPECT_EQ(sim.request(one).failed->kind, cluster::FailureKind::WorkerLost);
    EXPECT_FALSE(sim.is_serving());
    EXPECT_FALSE(sim.coordinator()->health().message.empty());
    sim.restart(2);
    ASSERT_TRUE(sim.run_until([this] { return sim.is_serving(); }, seconds(30)));
    const auto two = sim.submit(request(50, 30));
    ASSERT_TRUE(wait_over(two));
    EXPECT_EQ(sim.request(two).finished[0], FinishReason::Length);
    expect_clean();
}

TEST_F(Scenario, QueuedRequestsOutliveALossAndAreServedAfterwards) {
    std::vector<std::size_t> started;
    for (std::uint64_t seed = 0; seed < 4; ++seed)
        started.push_back(sim.submit(request(20, 400, seed)));
    std::vector<std::size_t> queued;
    for (std::uint64_t seed = 4; seed < 8; ++seed)
        queued.push_back(sim.submit(request(20, 30, seed)));
    cluster::Request hurried = request(20, 30, 9);
    hurried.deadline = milliseconds(1500);
    const auto late = sim.submit(hurried);
    sim.run_for(milliseconds(500));
    sim.crash(2, true);
    for (const std::size_t index : started) {
        ASSERT_TRUE(wait_over(index, seconds(10)));
        ASSERT_TRUE(sim.request(index).failed);
        EXPECT_EQ(sim.request(index).failed->kind, cluster::FailureKind::WorkerLost);
    }
    ASSERT_TRUE(wait_over(late, seconds(5)));
    ASSERT_TRUE(sim.request(late).failed);
    EXPECT_EQ(sim.request(late).failed->kind, cluster::FailureKind::DeadlineExceeded);
    for (const std::size_t index : queued) EXPECT_FALSE(sim.request(index).is_over());
    sim.restart(2);
    for (const std::size_t index : queued) {
        ASSERT_TRUE(wait_over(index));
        EXPECT_EQ(sim.request(index).finished[0], FinishReason::Length);
        EXPECT_EQ(sim.request(index).tokens[0].size(), 30u);
    }
    expect_clean();
}

TEST_F(Scenario, QueuedRequestsDoNotWaitForEverForService) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) sim.submit(request(20, 400, seed));
    const auto queued = sim.submit(request(20, 30, 5));
    sim.run_for(milliseconds(500));
    sim.crash(2, true);
    sim.run_for(seconds(3));
    EXPECT_FALSE(sim.request(queued).is_over());
    ASSERT_TRUE(wait_over(queued, seconds(4)));
    ASSERT_TRUE(sim.request(queued).failed);
    EXPECT_EQ(sim.request(queued).failed->kind, cluster::FailureKind::WorkerLost);
    EXPECT_GT(sim.request(queued).failed->retry_after, Duration::zero());
    sim.restart(2);
    expect_clean();
}

TEST_F(Scenario, AMachineThatStandsStillLosesNobody) {
    const auto one = sim.submit(request(100, 300));
    sim.run_for(milliseconds(300));
    for (std::size_t node = 0; node <= sim.worker_count(); ++node) sim.freeze(node);
    sim.run_for(seconds(10));
    for (std::size_t node = 0; node <= sim.worker_count(); ++node) sim.wake(node);
    ASSERT_TRUE(wait_over(one));
    EXPECT_EQ(sim.request(one).finished[0], FinishReason::Length);
    EXPECT_TRUE(sim.marks().contains("the coordinator stood still"));
    EXPECT_TRUE(sim.marks().contains("a worker stood still"));
    expect_clean();
}

TEST_F(Scenario, ASilentDeathIsNoticedByItsHeartbeat) {
    const auto one = sim.submit(request(50, 400));
    sim.run_for(milliseconds(300));
    sim.crash(1, false);
    ASSERT_TRUE(wait_over(one, seconds(10)));
    EXPECT_TRUE(sim.request(one).failed);
    sim.restart(1);
    expect_clean();
}

TEST_F(Scenario, AHiccupOfALinkIsNotALoss) {
    const auto one = sim.submit(request(100, 300));
    for (int i = 0; i < 5; ++i) {
        sim.run_for(milliseconds(50));
        sim.network().break_link(sim.id(1), sim.id(2));
        sim.run_for(milliseconds(50));
        sim.network().break_link(sim.id(0), sim.id(3));
    }
    ASSERT_TRUE(wait_over(one));
    EXPECT_EQ(sim.request(one).finished[0], FinishReason::Length);
    expect_clean();
}

TEST_F(Scenario, ACancelEndsTheRequestAndFreesItsPages) {
    const auto one = sim.submit(request(100, 400));
    sim.run_for(milliseconds(200));
    sim.cancel(one);
    ASSERT_TRUE(wait_over(one, seconds(5)));
    EXPECT_EQ(sim.request(one).finished[0], FinishReason::Cancelled);
    expect_clean();
}

TEST_F(Scenario, ThePromptThatDoesNotFitIsRefusedWithBothNumbers) {
    const auto one = sim.submit(request(600, 10));
    ASSERT_TRUE(sim.request(one).refused);
    const auto* too_long = std::get_if<cluster::PromptTooLong>(&*sim.request(one).refused);
    ASSERT_NE(too_long, nullptr);
    EXPECT_EQ(too_long->prompt_tokens, 600u);
    EXPECT_EQ(too_long->context, 512u);
    expect_clean();
}

TEST_F(Scenario, ACoordinatorThatRestartsServesAgainWithANewTerm) {
    const auto before = sim.coordinator()->epoch();
    sim.crash(0, true);
    sim.run_for(seconds(1));
    sim.restart(0);
    ASSERT_TRUE(sim.run_until([this] { return sim.is_serving(); }, seconds(30)));
    EXPECT_GT(sim.coordinator()->epoch().term, before.term);
    const auto one = sim.submit(request(20, 20));
    ASSERT_TRUE(wait_over(one));
    expect_clean();
}

TEST_F(Scenario, ADamagedPayloadNeverBecomesAToken) {
    const auto one = sim.submit(request(100, 100));
    for (int i = 0; i < 10; ++i) {
        sim.network().damage_next_payload();
        sim.run_for(milliseconds(100));
    }
    ASSERT_TRUE(wait_over(one));
    EXPECT_EQ(sim.request(one).finished[0], FinishReason::Length);
    expect_clean();
}

TEST_F(Scenario, APromptIsReadWhileASlowStageAlwaysHasDecodeStepsWaiting) {
    sim.device(3).layer_row = milliseconds(2);  // the last stage: 8 ms a row
    for (std::uint64_t seed = 0; seed < 3; ++seed) sim.submit(request(5, 450, seed));
    sim.run_for(seconds(1));
    const auto prompt = sim.submit(request(300, 1, 9));
    ASSERT_TRUE(sim.run_until([&] { return !sim.request(prompt).tokens[0].empty(); }, seconds(12)));
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_FALSE(sim.request(i).is_over()) << "the others should still be decoding";
    for (std::size_t i = 0; i <= prompt; ++i) ASSERT_TRUE(wait_over(i));
    expect_clean();
}

TEST_F(Scenario, OneRequestAtATimeIsFairToTheOthers) {
    // Ten requests, four places: nobody waits for more than those before it.
    std::vector<std::size_t> all;
    for (std::uint64_t seed = 0; seed < 10; ++seed)
        all.push_back(sim.submit(request(40, 40, seed)));
    for (const std::size_t index : all) ASSERT_TRUE(wait_over(index));
    for (const std::size_t index : all)
        EXPECT_EQ(sim.request(index).finished[0], FinishReason::Length);
    expect_clean();
}

}  // namespace
}  // namespace artel::simulation
