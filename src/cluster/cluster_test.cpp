// SPDX-License-Identifier: Apache-2.0
// Coordinator and workers together, over the small test cluster: the same tokens whatever the
// split, the chunk and the company; errors, not silence, when a part goes away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/term.hpp"
#include "cluster/test_cluster.hpp"
#include "protocol/random_message.hpp"

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
    const Epoch epoch = assignment.epoch;
    if (assignment.memory_bytes > real_memory) {
        const LoadFailed failed{epoch, protocol::StageRefusal::NotEnoughMemory, "too large",
                                assignment.memory_bytes, real_memory};
        return cluster.when_awake(id(), [failed](Node& n) { n.on_storage(failed); });
    }
    if (!streams) return finish_load();
    chunks_left_ = 5;
    for (std::uint64_t i = 0; i < 5; ++i)
        cluster.when_awake(id(), [epoch, i](Node& n) {
            n.on_storage(RangeWanted{epoch, {protocol::ModelPart::Tensor, 3, i * 1000, 1000}});
        });
}
void TestNode::finish_load() {
    cluster.when_awake(id(), [epoch = stage_.epoch](Node& n) {
        n.on_storage(LoadAdvanced{epoch, 1, 2});
        n.on_storage(LoadFinished{epoch});
    });
}
void TestNode::supply(protocol::WeightsChunk chunk) {
    if (!chunk.error.empty()) {
        const LoadFailed failed{chunk.epoch, protocol::StageRefusal::LoadFailed, chunk.error, 0, 0};
        return cluster.when_awake(id(), [failed](Node& n) { n.on_storage(failed); });
    }
    if (--chunks_left_ == 0) finish_load();
}
void TestNode::read(NodeId requester, const protocol::WeightsRequest& request) {
    RangeRead read{requester, {request.epoch, request.model, request.range, 4900, {}, "", {}}};
    const std::uint64_t left = 4900 - std::min<std::uint64_t>(4900, request.range.offset);
    const std::uint64_t bytes = std::min<std::uint64_t>(left, request.range.bytes);
    read.chunk.payload = SharedBytes(std::vector<std::byte>(bytes, std::byte{7}));
    read.chunk.hash = protocol::hash_bytes(read.chunk.payload.span());
    if (damages-- > 0) read.chunk.hash.low ^= 1;
    cluster.when_awake(id(), [read](Node& n) { n.on_storage(read); });
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
    if (bad_steps > 0 && outcome.error.ok()) {
        --bad_steps;
        outcome.error = data_loss("a value is not finite");
    }
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
    ASSERT_EQ(health.missing_layers.size(), 1U);
    EXPECT_GT(health.missing_layers[0].count, 0U);
    EXPECT_THAT(health.message, HasSubstr("waiting for worker b"));
    EXPECT_EQ(health.plan_refusal, "") << "b may come back: nothing says that it cannot be planned";
    EXPECT_TRUE(std::holds_alternative<NotReady>(
        cluster->submit(TestCluster::request(10, 1))->refusals.at(0)));
    ASSERT_TRUE(cluster->run_until_serving());
    const Request again = TestCluster::request(100, 20);
    auto after = cluster->submit(again);
    cluster->run(5s);
    EXPECT_EQ(after->tokens[0], oracle(again, 6));
}

TEST(Cluster, HealthNamesWhatEveryLostWorkerHeldUntilItIsBack) {
    auto cluster = make_cluster(options(6, 3));
    ASSERT_TRUE(cluster->run_until_serving());
    cluster->crash("a", 6s);
    cluster->crash("c", 3s);
    cluster->run(1500ms);
    const auto missing = [&] { return cluster->coordinator().health().missing_layers; };
    ASSERT_EQ(missing().size(), 2U);
    EXPECT_EQ(missing()[0].first, 0U);
    EXPECT_EQ(missing()[1].first + missing()[1].count, 6U);
    const std::uint64_t both = cluster->coordinator().health().missing_bytes;
    cluster->run(2500ms);
    ASSERT_EQ(missing().size(), 1U);
    EXPECT_EQ(missing()[0].first, 0U);
    EXPECT_LT(cluster->coordinator().health().missing_bytes, both);
    ASSERT_TRUE(cluster->run_until_serving());
    EXPECT_TRUE(missing().empty());
    EXPECT_EQ(cluster->coordinator().health().missing_bytes, 0U);
}

TEST(Cluster, AWorkerStartedAgainWhileLoadingIsOfTheNextEpoch) {
    auto cluster = make_cluster(options(6, 3));
    while (cluster->coordinator().health().state != ServiceState::Loading) cluster->run(1ms);
    const Epoch first = cluster->coordinator().epoch();
    cluster->crash("b", 50ms);  // back before its link counts as lost
    ASSERT_TRUE(cluster->run_until_serving());
    EXPECT_GT(cluster->coordinator().epoch().number, first.number);
    EXPECT_TRUE(
        cluster->node("coordinator").marks.contains("a worker comes back without its state"));
    EXPECT_TRUE(cluster->node("coordinator").lost.empty());
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
    EXPECT_THAT(health.plan_refusal, HasSubstr("does not fit"));
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

TEST(Cluster, StreamsWeightsAndAsksAgainForDamagedOnes) {
    auto cluster = std::make_unique<TestCluster>(options(4, 2));
    for (const char* name : {"a", "b"}) {
        cluster->add_worker(name);
        cluster->node(name).streams = true;
    }
    cluster->node("coordinator").damages = 6;
    ASSERT_TRUE(cluster->run_until_serving());
    EXPECT_TRUE(cluster->node("a").marks.contains("weights arrive damaged"));
    auto hopeless = std::make_unique<TestCluster>(options(4, 1));
    hopeless->add_worker("a");
    hopeless->node("a").streams = true;
    hopeless->node("coordinator").damages = 1 << 30;
    EXPECT_FALSE(hopeless->run_until_serving(3s));
    EXPECT_THAT(hopeless->coordinator().health().message, HasSubstr("arrived damaged 4 times"));
}

TEST(Cluster, ABrokenLinkWhileWeightsStreamOnlyCostsTime) {
    auto cluster = std::make_unique<TestCluster>(options(4, 2));
    for (const char* name : {"a", "b"}) {
        cluster->add_worker(name);
        cluster->node(name).streams = true;
    }
    cluster->run(11ms);
    for (int i = 0; i < 10; ++i) {
        cluster->break_link("coordinator", "a");
        cluster->run(106ms);
    }
    EXPECT_TRUE(cluster->run_until_serving());
}

TEST(Cluster, PlansAgainWhenAWorkerHasLessMemoryThanItSaid) {
    auto cluster = make_cluster(options(6, 2));
    constexpr std::uint64_t kReal = 150'000;  // two layers and their state, not three
    cluster->node("a").real_memory = kReal;
    ASSERT_TRUE(cluster->run_until_serving()) << cluster->coordinator().health().message;
    const Plan& plan = *cluster->coordinator().plan();
    for (const PlanStage& stage : plan.stages)
        EXPECT_TRUE(stage.name != "a" || stage.total_bytes() <= kReal);
    EXPECT_TRUE(
        cluster->node("coordinator").marks.contains("a worker has less memory than it said"));
}

TEST(Cluster, AValueThatIsNotFiniteEndsItsRequestOnly) {
    const Request request = TestCluster::request(100, 60, 1);
    auto cluster = make_cluster(options(6, 3));
    ASSERT_TRUE(cluster->run_until_serving());
    const Epoch epoch = cluster->coordinator().epoch();
    auto poisoned = cluster->submit(TestCluster::request(300, 60));
    cluster->run(4ms);  // its first chunks are in the pipe
    cluster->node("b").bad_steps = 1;
    cluster->run(30ms);
    auto healthy = cluster->submit(request);
    cluster->run(10s);
    ASSERT_EQ(poisoned->failures.size(), 1U);
    EXPECT_EQ(poisoned->failures[0].kind, FailureKind::StepFailed);
    EXPECT_THAT(poisoned->failures[0].message, HasSubstr("worker b"));
    EXPECT_EQ(healthy->tokens[0], oracle(request, 6));
    EXPECT_EQ(cluster->coordinator().epoch(), epoch);
    EXPECT_EQ(cluster->coordinator().page_tables().pages_in_use(0), 0U);
}

TEST(Cluster, ManyLargeSamplingSetupsStillFitTheirFrames) {
    CoordinatorOptions given = options(2, 2);
    given.plan.parallel = 64;
    given.plan.chunk_rows = 512;
    auto cluster = make_cluster(given);
    ASSERT_TRUE(cluster->run_until_serving());
    Request request = TestCluster::request(4, 3);
    for (TokenId i = 0; i < 4096; ++i) request.sampling.logit_bias.push_back({i % 1000, 0.5F});
    std::vector<std::shared_ptr<CollectingSink>> sinks;
    for (int i = 0; i < 64; ++i) sinks.push_back(cluster->submit(request));
    cluster->run(5s);
    for (const auto& sink : sinks) EXPECT_EQ(sink->finished.size(), 1U);
    EXPECT_EQ(cluster->unencodable, std::vector<std::string>{});
}

TEST(Cluster, TheOlderOfTwoCoordinatorsStops) {
    auto cluster = make_cluster(options(4, 2));
    ASSERT_TRUE(cluster->run_until_serving());
    auto sink = cluster->submit(TestCluster::request(10, 500));
    auto& worker = static_cast<Worker&>(*cluster->node("a").node);
    protocol::AssignStage newer = *worker.assignment();
    newer.epoch = {100, 1};  // as if another coordinator had sent it
    worker.on_message(protocol::node_id("coordinator"), newer);
    cluster->run(100ms);
    protocol::AssignStage older = newer;
    older.epoch = {99, 7};
    worker.on_message(protocol::node_id("coordinator"), older);
    EXPECT_TRUE(cluster->node("a").marks.contains("worker refuses an old term"));
    cluster->run(5s);
    EXPECT_EQ(cluster->coordinator().health().state, ServiceState::Stopped);
    EXPECT_THAT(cluster->coordinator().health().message, HasSubstr("term 100"));
    EXPECT_EQ(sink->failures.size(), 1U);
}

/// Random messages as if from anyone, with epochs and numbers that often fit.
Message plausible(Random& random, const Epoch& epoch, std::uint64_t steps) {
    Message message =
        protocol::random_message::make(random.below(std::variant_size_v<Message>), random);
    std::visit(
        [&](auto& m) {
            if constexpr (requires { m.epoch; }) {
                if (random.chance(0.8)) m.epoch = epoch;
                m.epoch.term = std::min(m.epoch.term, epoch.term);
            }
            if constexpr (requires { m.number; })
                if (random.chance(0.8)) m.number = StepNumber{1 + random.below(steps + 4)};
            if constexpr (requires { m.returned_through; })
                if (random.chance(0.8)) m.returned_through = {};
            if constexpr (requires { m.epoch_obeyed; })
                m.epoch_obeyed.term = std::min(m.epoch_obeyed.term, epoch.term);
        },
        message);
    return message;
}

TEST(Cluster, SurvivesAnyMessagesFromAnyoneAndServesAgain) {
    Random random(31337);
    auto cluster = make_cluster(options(4, 3));
    const std::vector<std::string> names = {"coordinator", "a", "b", "c"};
    ASSERT_TRUE(cluster->run_until_serving());
    for (int round = 0; round < 4000; ++round) {
        if (round % 50 == 0) cluster->submit(TestCluster::request(50, 20));
        const std::string& to = names[random.below(4)];
        const std::string& from = names[random.below(4)];
        const Epoch epoch = cluster->coordinator().epoch();
        Message message = plausible(random, epoch, 30);
        if (auto* report = std::get_if<protocol::WorkerReport>(&message);
            report && random.chance(0.5))
            report->name = from;
        cluster->node(to).node->on_message(protocol::node_id(from), std::move(message));
        cluster->run(std::chrono::microseconds(random.below(3000)));
    }
    for (const char* name : {"a", "b", "c"}) cluster->crash(name, 100ms);
    ASSERT_TRUE(cluster->run_until_serving(60s)) << cluster->coordinator().health().message;
    const Request request = TestCluster::request(50, 20);
    auto sink = cluster->submit(request);
    cluster->run(10s);
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
