// SPDX-License-Identifier: Apache-2.0
// Coordinator and workers together, over the small test cluster: the same tokens whatever the
// split, the chunk and the company; errors, not silence, when a part goes away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/term.hpp"
#include "cluster/test_cluster.hpp"

namespace artel::cluster {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// ---- the test cluster's nodes ----

TestNode::TestNode(TestCluster& owner, std::string given)
    : cluster(owner), name(std::move(given)) {}

Environment TestNode::environment() {
    return {cluster.time, *this, *this, *this, random, *this};
}
void TestNode::send(NodeId to, Message message) {
    cluster.deliver(id(), to, std::move(message));
}
void TestNode::connect(NodeId peer, const std::string&) {
    if (dialled.insert(peer).second && !cluster.is_linked(id(), peer)) cluster.dial(id(), peer);
}
void TestNode::disconnect(NodeId peer) {
    dialled.erase(peer);
    cluster.close(id(), peer);
}
void TestNode::load(const protocol::AssignStage& assignment) {
    stage_ = assignment;
    tables_ = StageTables(assignment);
    state_.clear();
    cluster.when_awake(id(), [epoch = assignment.epoch](Node& n) {
        n.on_storage(LoadAdvanced{epoch, 1, 2});
        n.on_storage(LoadFinished{epoch});
    });
}
void TestNode::put(const std::string& key, std::vector<std::byte> record) {
    records[key] = std::move(record);
    cluster.when_awake(id(), [key](Node& n) { n.on_storage(RecordStored{key, ok()}); });
}
void TestNode::cancel(Epoch) {
    state_.clear();
    tables_ = StageTables(stage_);
}
void TestNode::submit(protocol::Step step) {
    if (is_stuck) return;
    cluster.time.at(1ms, [this, step = std::move(step), born = life] {
        if (born != life) return;
        StepOutcome outcome = compute(step);
        ++steps_run;
        cluster.when_awake(id(), [outcome](Node& n) { n.on_step_done(outcome); });
    });
}

/// Layer after layer: the row's value is mixed with everything that the position can see.
std::uint64_t TestNode::run_row(const StageTables::Sequence& sequence, std::uint32_t position,
                                std::uint64_t value) {
    for (std::uint32_t layer = stage_.layers.first; layer < stage_.layers.end(); ++layer) {
        const std::uint32_t g = layer % 2;
        const protocol::StateGroup& group = stage_.groups[g];
        const auto place = [&](std::uint32_t at) {
            const PageId page = sequence.tables[g].page(at / protocol::kPageTokens);
            return std::tuple(g, page.value, at % protocol::kPageTokens, layer);
        };
        state_[place(position)] = value;
        const std::uint32_t first =
            group.kind == protocol::StateKind::Windowed && position >= group.window
                ? position - group.window + 1
                : 0;
        std::uint64_t seen = layer;
        for (std::uint32_t at = first; at <= position; ++at) seen = mix(seen, state_[place(at)]);
        value = mix(value, seen);
    }
    return value;
}

StepOutcome TestNode::compute(const protocol::Step& step) {
    StepOutcome outcome{step.epoch, step.number, tables_.apply(step), {}, {}, {}};
    if (!outcome.error.ok()) return outcome;
    std::vector<std::byte> out, logits;
    std::size_t row = 0;
    for (const protocol::StepRun& run : step.runs) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < run.tokens.size(); ++i, ++row) {
            const auto position = run.first_position + static_cast<std::uint32_t>(i);
            value = mix(run.tokens[i], 77);
            if (!stage_.has_input) std::memcpy(&value, step.activations.data() + 8 * row, 8);
            value = run_row(tables_.sequence(run.sequence), position, value);
            const auto bytes = std::as_bytes(std::span(&value, 1));
            out.insert(out.end(), bytes.begin(), bytes.end());
        }
        if (run.wants_logits) logits.resize(logits.size() + run.tokens.size() * 4000);
        if (!run.samples || !stage_.has_output) continue;
        const auto end = run.first_position + static_cast<std::uint32_t>(run.tokens.size());
        outcome.tokens.push_back(
            {run.sequence, end, static_cast<TokenId>(value % stage_.vocabulary_size), 0, {}});
    }
    if (stage_.has_output)
        outcome.logits = SharedBytes(std::move(logits));
    else
        outcome.activations = SharedBytes(std::move(out));
    return outcome;
}

Result<Epoch> TestCluster::read_epoch(const std::vector<std::byte>& record) {
    return read_epoch_record(record);
}

// ---- tests ----

namespace {

CoordinatorOptions options(std::uint32_t layers, std::uint32_t workers) {
    CoordinatorOptions options;
    options.model = TestCluster::model(layers);
    options.plan.parallel = 4;
    options.plan.chunk_rows = 32;
    for (std::uint32_t i = 0; i < workers; ++i)
        options.expected_workers.push_back(std::string(1, static_cast<char>('a' + i)));
    return options;
}

std::unique_ptr<TestCluster> make_cluster(const CoordinatorOptions& options) {
    auto cluster = std::make_unique<TestCluster>(options);
    for (const std::string& name : options.expected_workers) cluster->add_worker(name);
    return cluster;
}

/// What one worker alone says to the request.
std::vector<TokenId> oracle(const Request& request, std::uint32_t layers) {
    auto cluster = make_cluster(options(layers, 1));
    EXPECT_TRUE(cluster->run_until_serving());
    auto sink = cluster->submit(request);
    cluster->run(30s);
    EXPECT_EQ(sink->finished.size(), 1U);
    return sink->tokens[0];
}

TEST(Cluster, AnswersTheSameForEverySplit) {
    const Request request = TestCluster::request(150, 40);
    const auto expected = oracle(request, 6);
    ASSERT_EQ(expected.size(), 40U);
    for (const std::uint32_t workers : {2U, 3U, 5U}) {
        auto cluster = make_cluster(options(6, workers));
        ASSERT_TRUE(cluster->run_until_serving()) << workers;
        auto sink = cluster->submit(request);
        cluster->run(30s);
        EXPECT_EQ(sink->tokens[0], expected) << workers;
        EXPECT_EQ(sink->finished[0], FinishReason::Length);
        EXPECT_EQ(cluster->unencodable, std::vector<std::string>{});
    }
}

TEST(Cluster, AnswersTheSameForEveryChunkAndBesideOthers) {
    std::vector<Request> requests;
    std::vector<std::vector<TokenId>> expected;
    for (TokenId salt = 0; salt < 9; ++salt) {
        requests.push_back(TestCluster::request(20 + 40 * salt, 30, salt));
        expected.push_back(oracle(requests.back(), 4));
    }
    for (const std::uint32_t chunk : {1U, 7U, 64U, 512U}) {
        CoordinatorOptions given = options(4, 3);
        given.plan.chunk_rows = chunk;
        auto cluster = make_cluster(given);
        ASSERT_TRUE(cluster->run_until_serving());
        std::vector<std::shared_ptr<CollectingSink>> sinks;
        for (const Request& request : requests) sinks.push_back(cluster->submit(request));
        cluster->run(60s);
        for (std::size_t i = 0; i < sinks.size(); ++i)
            EXPECT_EQ(sinks[i]->tokens[0], expected[i]) << "chunk " << chunk << " request " << i;
        const PageTables& pages = cluster->coordinator().page_tables();
        for (std::size_t g = 0; g < pages.group_count(); ++g) EXPECT_EQ(pages.pages_in_use(g), 0U);
    }
}

TEST(Cluster, ServesARequestsChoicesAndLogits) {
    auto cluster = make_cluster(options(4, 2));
    ASSERT_TRUE(cluster->run_until_serving());
    Request request = TestCluster::request(70, 5);
    request.choices = 6;  // more than fit at once
    request.wants_prompt_logits = true;
    request.choices = 1;
    auto logits = cluster->submit(request);
    request.wants_prompt_logits = false;
    request.choices = 6;
    auto choices = cluster->submit(request);
    cluster->run(10s);
    EXPECT_EQ(logits->logits_rows, 70U);
    EXPECT_EQ(logits->finished.size(), 1U);
    EXPECT_EQ(choices->finished.size(), 6U);
    for (auto& [choice, tokens] : choices->tokens) EXPECT_EQ(tokens, logits->tokens[0]);
}

TEST(Cluster, EndsAtATokenOfTheEndSet) {
    const Request plain = TestCluster::request(10, 40);
    const auto expected = oracle(plain, 4);
    Request ending = plain;
    ending.end_tokens = {expected[7], 5000};
    auto cluster = make_cluster(options(4, 2));
    ASSERT_TRUE(cluster->run_until_serving());
    auto sink = cluster->submit(ending);
    cluster->run(5s);
    EXPECT_EQ(sink->finished[0], FinishReason::Stop);
    EXPECT_EQ(sink->tokens[0].back(), expected[7]);
    EXPECT_LE(sink->tokens[0].size(), 8U);
}

TEST(Cluster, RefusesWhatDoesNotFitTheContext) {
    auto cluster = make_cluster(options(4, 1));
    ASSERT_TRUE(cluster->run_until_serving());
    auto sink = cluster->submit(TestCluster::request(1025, 1));
    ASSERT_EQ(sink->refusals.size(), 1U);
    const auto* refusal = std::get_if<PromptTooLong>(&sink->refusals[0]);
    ASSERT_NE(refusal, nullptr);
    EXPECT_EQ(refusal->prompt_tokens, 1025U);
    EXPECT_EQ(refusal->context, 1024U);
    EXPECT_TRUE(cluster->submit(TestCluster::request(1000, 24))->refusals.empty());
    EXPECT_FALSE(cluster->submit(TestCluster::request(1000, 25))->refusals.empty());
}

TEST(Cluster, CancelFreesTheRequestWithinAStep) {
    auto cluster = make_cluster(options(4, 2));
    ASSERT_TRUE(cluster->run_until_serving());
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    std::vector<RequestId> ids(8);
    for (TokenId i = 0; i < 8; ++i)
        sinks.push_back(cluster->submit(TestCluster::request(200, 500, i), &ids[i]));
    cluster->run(100ms);
    for (const RequestId id : ids) cluster->coordinator().cancel(id);
    for (auto& sink : sinks) EXPECT_EQ(sink->finished[0], FinishReason::Cancelled);
    cluster->run(50ms);
    EXPECT_EQ(cluster->coordinator().health().requests_running, 0U);
    const PageTables& pages = cluster->coordinator().page_tables();
    EXPECT_EQ(pages.pages_in_use(0), 0U);
    EXPECT_EQ(pages.pages_in_use(1), 0U);
}

TEST(Cluster, AKilledWorkerFailsRequestsAndServiceReturns) {
    auto cluster = make_cluster(options(6, 3));
    ASSERT_TRUE(cluster->run_until_serving());
    auto sink = cluster->submit(TestCluster::request(100, 500));
    cluster->run(300ms);
    ASSERT_FALSE(sink->tokens[0].empty());
    cluster->crash("b", 3s);
    cluster->run(1500ms);
    ASSERT_EQ(sink->failures.size(), 1U);
    EXPECT_EQ(sink->failures[0].kind, FailureKind::WorkerLost);
    EXPECT_EQ(cluster->node("coordinator").lost, std::vector<std::string>{"b"});
    const Health health = cluster->coordinator().health();
    EXPECT_EQ(health.state, ServiceState::WaitingForWorkers);
    EXPECT_GT(health.missing_layers.count, 0U);
    EXPECT_THAT(health.message, HasSubstr("waiting for worker b"));
    EXPECT_TRUE(std::holds_alternative<NotReady>(
        cluster->submit(TestCluster::request(10, 1))->refusals.at(0)));
    ASSERT_TRUE(cluster->run_until_serving());
    const Request again = TestCluster::request(100, 20);
    auto after = cluster->submit(again);
    cluster->run(5s);
    EXPECT_EQ(after->tokens[0], oracle(again, 6));
}

TEST(Cluster, AFrozenWorkerIsLostAfterFourSecondsNotThree) {
    auto cluster = make_cluster(options(6, 3));
    ASSERT_TRUE(cluster->run_until_serving());
    const Request request = TestCluster::request(100, 900);
    auto sink = cluster->submit(request);
    cluster->run(200ms);
    cluster->node("b").is_frozen = true;
    cluster->run(3s);
    cluster->thaw("b");
    cluster->run(500ms);
    EXPECT_TRUE(sink->failures.empty());
    cluster->node("b").is_frozen = true;
    cluster->run(5s);
    ASSERT_EQ(sink->failures.size(), 1U);
    EXPECT_EQ(sink->failures[0].kind, FailureKind::WorkerLost);
    cluster->thaw("b");
    EXPECT_TRUE(cluster->run_until_serving());
}

TEST(Cluster, BrokenLinksThatComeBackChangeNothing) {
    const Request request = TestCluster::request(300, 200);
    const auto expected = oracle(request, 6);
    const std::vector<std::pair<std::string, std::string>> links = {
        {"a", "b"}, {"b", "c"}, {"coordinator", "a"}, {"coordinator", "c"}, {"coordinator", "b"}};
    for (const auto& [one, other] : links) {
        auto cluster = make_cluster(options(6, 3));
        ASSERT_TRUE(cluster->run_until_serving());
        auto sink = cluster->submit(request);
        for (int i = 0; i < 20; ++i) {
            cluster->run(std::chrono::microseconds(20300 + 1700 * i));
            cluster->break_link(one, other);
            cluster->run(150ms);
        }
        cluster->run(20s);
        EXPECT_EQ(sink->tokens[0], expected) << one << " to " << other;
        EXPECT_TRUE(sink->failures.empty());
    }
}

TEST(Cluster, AStuckExecutorEndsTheRequest) {
    auto cluster = make_cluster(options(4, 2));
    ASSERT_TRUE(cluster->run_until_serving());
    auto sink = cluster->submit(TestCluster::request(10, 500));
    cluster->run(100ms);
    cluster->node("b").is_stuck = true;
    cluster->run(4s);
    EXPECT_TRUE(sink->failures.empty());
    cluster->run(2s);
    ASSERT_EQ(sink->failures.size(), 1U);
    EXPECT_THAT(sink->failures[0].message, HasSubstr("no progress"));
}

TEST(Cluster, ARestartedCoordinatorTakesAHigherTerm) {
    auto cluster = make_cluster(options(4, 2));
    ASSERT_TRUE(cluster->run_until_serving());
    const Epoch first = cluster->coordinator().epoch();
    cluster->crash("coordinator", 2s);
    cluster->run(3s);
    ASSERT_TRUE(cluster->run_until_serving());
    EXPECT_GT(cluster->coordinator().epoch().term, first.term);
    // Even if its state dir was lost, the workers know the term.
    cluster->node("coordinator").records.clear();
    const Epoch second = cluster->coordinator().epoch();
    cluster->crash("coordinator", 2s);
    cluster->run(3s);
    ASSERT_TRUE(cluster->run_until_serving());
    EXPECT_GT(cluster->coordinator().epoch().term, second.term);
}

TEST(Cluster, SaysHowManyBytesAreMissing) {
    CoordinatorOptions given = options(6, 2);
    auto cluster = std::make_unique<TestCluster>(given);
    cluster->add_worker("a", 1000);
    cluster->add_worker("b", 2000);
    EXPECT_FALSE(cluster->run_until_serving(2s));
    const Health health = cluster->coordinator().health();
    EXPECT_GT(health.missing_bytes, 0U);
    EXPECT_THAT(health.message, HasSubstr("does not fit"));
    EXPECT_THAT(health.message, HasSubstr("one more machine with"));
}

TEST(Cluster, MoreWorkersThanLayersLeaveSpares) {
    auto cluster = make_cluster(options(2, 5));
    ASSERT_TRUE(cluster->run_until_serving());
    const Request request = TestCluster::request(20, 10);
    auto sink = cluster->submit(request);
    cluster->run(5s);
    EXPECT_EQ(sink->tokens[0], oracle(request, 2));
    EXPECT_EQ(cluster->coordinator().plan()->spares.size(), 3U);
}

TEST(Cluster, AnExplicitSplitMayGiveAnEndToAWorkerWithoutLayers) {
    CoordinatorOptions given = options(4, 4);
    given.plan.split = {0, 3, 1, 0};
    auto cluster = make_cluster(given);
    ASSERT_TRUE(cluster->run_until_serving());
    EXPECT_EQ(cluster->coordinator().plan()->stages.size(), 4U);
    const Request request = TestCluster::request(20, 10);
    auto sink = cluster->submit(request);
    cluster->run(5s);
    EXPECT_EQ(sink->tokens[0], oracle(request, 4));
}

// The tests above can fail: each deliberate bug changes what comes out.
TEST(ClusterCanaries, SharedPagesChangeTokens) {
    CoordinatorOptions given = options(4, 2);
    given.canaries.frees_pages_twice = true;
    auto cluster = make_cluster(given);
    ASSERT_TRUE(cluster->run_until_serving());
    std::vector<Request> requests;
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (TokenId salt = 0; salt < 6; ++salt) {
        requests.push_back(TestCluster::request(60 + salt * 20, 100, salt));
        sinks.push_back(cluster->submit(requests.back()));
    }
    cluster->run(30s);
    int wrong = 0;
    for (std::size_t i = 0; i < sinks.size(); ++i)
        wrong += sinks[i]->tokens[0] != oracle(requests[i], 4) ? 1 : 0;
    EXPECT_GT(wrong, 0);
}

TEST(ClusterCanaries, ALayerHeldTwiceChangesTokensOrIsRefused) {
    CoordinatorOptions given = options(4, 2);
    given.canaries.counts_a_layer_twice = true;
    auto cluster = make_cluster(given);
    ASSERT_TRUE(cluster->run_until_serving());
    const Request request = TestCluster::request(30, 20);
    auto sink = cluster->submit(request);
    cluster->run(5s);
    EXPECT_NE(sink->tokens[0], oracle(request, 4));
}

TEST(ClusterCanaries, WithoutSendingAgainABrokenLinkHurts) {
    const Request request = TestCluster::request(300, 200);
    auto cluster = std::make_unique<TestCluster>(options(6, 3));
    cluster->worker_canaries.forgets_resend = true;
    for (const char* name : {"a", "b", "c"}) cluster->add_worker(name);
    ASSERT_TRUE(cluster->run_until_serving());
    auto sink = cluster->submit(request);
    for (int i = 0; i < 20; ++i) {
        cluster->run(std::chrono::microseconds(20300 + 1700 * i));
        cluster->break_link("a", "b");
        cluster->run(150ms);
    }
    cluster->run(20s);
    EXPECT_EQ(sink->failures.size(), 1U);
}

}  // namespace
}  // namespace artel::cluster
