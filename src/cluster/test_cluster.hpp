// SPDX-License-Identifier: Apache-2.0
// For tests only: a coordinator and some workers in one thread on virtual time, over links that
// only delay, break and come back. The model is a hash chain whose state lies in pages, so that a
// lost, repeated or reordered row, or a page given to two sequences, changes the tokens that
// follow. The full simulator with faults and checkers is simulation/; this is what the unit tests
// need.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/coordinator.hpp"
#include "cluster/page_index.hpp"
#include "cluster/stage_tables.hpp"
#include "cluster/worker.hpp"
#include "protocol/codec.hpp"
#include "protocol/hash.hpp"

namespace artel::cluster {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    return Random(a * 0x9E3779B97F4A7C15ULL ^ (b + 0x7F4A7C15ULL)).next();
}

class VirtualTime final : public Clock {
  public:
    TimePoint now() const override { return now_; }
    void at(Duration delay, std::function<void()> event) {
        events_.emplace(now_ + delay, std::move(event));
    }
    /// Runs all events up to `until`.
    void run_until(TimePoint until) {
        while (!events_.empty() && events_.begin()->first <= until) {
            now_ = events_.begin()->first;
            const auto event = std::move(events_.begin()->second);
            events_.erase(events_.begin());
            event();
        }
        now_ = until;
    }

  private:
    TimePoint now_{};
    std::multimap<TimePoint, std::function<void()>> events_;  // equal times in order of insertion
};

struct CollectingSink final : RequestSink {
    std::vector<Refusal> refusals;
    std::map<std::uint32_t, std::vector<TokenId>> tokens;
    std::map<std::uint32_t, FinishReason> finished;
    std::vector<RequestFailure> failures;
    std::uint32_t logits_rows = 0;
    std::uint64_t untaken = 0;  // bytes of logits, as a slow client would have
    std::uint64_t logits_waiting() const override { return untaken; }
    void on_refused(const Refusal& refusal) override { refusals.push_back(refusal); }
    void on_token(std::uint32_t choice, const Token& token) override {
        tokens[choice].push_back(token.id);
    }
    void on_logits(std::uint32_t first, std::uint32_t rows, SharedBytes) override {
        if (first == logits_rows) logits_rows += rows;
    }
    void on_finished(std::uint32_t choice, FinishReason reason) override {
        finished[choice] = reason;
    }
    void on_failed(const RequestFailure& failure) override { failures.push_back(failure); }
};

class TestCluster;

/// All doors of one node; one object, since each is small.
class TestNode final : public Transport, public Executor, public Storage, public Observer {
  public:
    TestNode(TestCluster& owner, std::string given);

    void send(NodeId to, Message message) override;
    void connect(NodeId peer, const std::string& address) override;
    void disconnect(NodeId peer) override;
    void submit(protocol::Step step) override;
    void cancel(Epoch epoch) override;
    std::uint64_t progress() const override { return steps_run; }
    void load(const protocol::AssignStage& assignment) override;
    void unload() override { is_loaded = false; }
    void supply(protocol::WeightsChunk chunk) override;
    void read(NodeId requester, const protocol::WeightsRequest& request) override;
    void put(const std::string& key, std::vector<std::byte> record) override;
    void note(Severity, const std::string& text) override { notes.push_back(text); }
    void covered(std::string_view mark) override { marks.insert(std::string(mark)); }
    void worker_lost(NodeId, const std::string& who, const Error&) override { lost.push_back(who); }
    void health_changed() override {}

    NodeId id() const { return protocol::node_id(name); }
    Environment environment();

    TestCluster& cluster;
    std::string name;
    Random random{1};
    std::unique_ptr<Node> node;
    std::map<std::string, std::vector<std::byte>> records;
    std::set<NodeId> dialled;
    std::vector<std::string> notes, lost;
    std::set<std::string> marks;
    bool is_running = true;  // false: killed
    bool is_frozen = false;  // gets no events (SIGSTOP)
    bool is_stuck = false;   // its executor never finishes
    bool is_loaded = false;
    bool streams = false;               // asks the coordinator for its weights
    int damages = 0;                    // so many chunks read here arrive damaged
    int bad_steps = 0;                  // so many steps end in a value that is not finite
    std::uint64_t real_memory = ~0ULL;  // a load that needs more is refused
    std::uint64_t steps_run = 0;
    std::uint64_t life = 0;  // events of an earlier life are dropped

  private:
    StepOutcome compute(const protocol::Step& step);
    std::uint64_t run_row(const StageTables::Sequence& sequence, std::uint32_t position,
                          std::uint64_t value);

    void finish_load();

    std::uint32_t chunks_left_ = 0;
    protocol::AssignStage stage_;
    StageTables tables_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t>
        state_;  // (group, page, offset, layer)
};

class TestCluster {
  public:
    explicit TestCluster(CoordinatorOptions options) : options_(std::move(options)) {
        add("coordinator");
        start_coordinator();
        tick();
    }

    static ModelProfile model(std::uint32_t layers) {
        ModelProfile model;
        model.name = "hash";
        model.digest = {1, 2};
        model.architecture = "hash";
        model.formats = {"F32"};
        model.groups = {{protocol::StateKind::Paged, 0}, {protocol::StateKind::Windowed, 100}};
        for (std::uint32_t i = 0; i < layers; ++i)
            model.layers.push_back({1000, 1000, 2000, {{i % 2, 16}}});
        model.context_max = 1024;
        model.vocabulary_size = 1000;
        model.row_bytes = 8;
        return model;
    }

    void add_worker(const std::string& name, std::uint64_t memory = 1U << 30U) {
        memory_[name] = memory;
        add(name);
        start_worker(name);
    }
    TestNode& node(const std::string& name) { return *nodes_.at(protocol::node_id(name)); }
    Coordinator& coordinator() { return static_cast<Coordinator&>(*node("coordinator").node); }

    /// Ends a process at once and starts it again after `pause`.
    void crash(const std::string& name, Duration pause) {
        TestNode& victim = node(name);
        victim.is_running = false;
        ++victim.life;
        const NodeId id = victim.id();
        for (auto& [other, entry] : nodes_)
            if (is_linked(id, other)) break_link(id, other);
        time.at(pause, [this, name] {
            if (name == "coordinator")
                start_coordinator();
            else
                start_worker(name);
        });
    }
    /// Closes the link, losing what is on its way; the dialler comes back after 100 ms.
    void break_link(const std::string& a, const std::string& b) {
        break_link(protocol::node_id(a), protocol::node_id(b));
    }
    void run(Duration duration) { time.run_until(time.now() + duration); }
    /// Runs until serving, at most `most`.
    bool run_until_serving(Duration most = std::chrono::seconds(20)) {
        const TimePoint end = time.now() + most;
        while (time.now() < end && coordinator().health().state != ServiceState::Serving)
            run(std::chrono::milliseconds(10));
        return coordinator().health().state == ServiceState::Serving;
    }
    std::shared_ptr<CollectingSink> submit(Request request, RequestId* id = nullptr) {
        auto sink = std::make_shared<CollectingSink>();
        const RequestId given{++last_request_};
        if (id != nullptr) *id = given;
        if (auto refusal = coordinator().submit(given, std::move(request), sink))
            sink->on_refused(*refusal);
        return sink;
    }
    static Request request(std::uint32_t prompt, std::uint32_t tokens, TokenId salt = 0) {
        Request request;
        for (std::uint32_t i = 0; i < prompt; ++i)
            request.prompt.push_back((i * 7 + salt * 131 + 1) % 1000);
        request.max_tokens = tokens;
        return request;
    }

    // Used by TestNode.
    void deliver(NodeId from, NodeId to, Message message) {
        const auto link = links_.find(key(from, to));
        if (link == links_.end()) return;
        auto encoded = protocol::encode(message);  // never shares memory, as on a wire
        if (!encoded.ok()) {
            unencodable.push_back(std::string(encoded.status().message()));
            return;
        }
        const std::uint64_t generation = link->second;
        time.at(std::chrono::milliseconds(1), [this, from, to, generation, encoded = *encoded] {
            const auto now = links_.find(key(from, to));
            if (now == links_.end() || now->second != generation) return;
            auto decoded = protocol::decode(encoded);
            if (decoded.ok())
                when_awake(to,
                           [from, message = *decoded](Node& n) { n.on_message(from, message); });
            else
                unencodable.push_back(std::string(decoded.status().message()));
        });
    }
    void dial(NodeId from, NodeId to) {
        time.at(std::chrono::milliseconds(5), [this, from, to] {
            if (is_linked(from, to) || !nodes_.at(from)->dialled.contains(to)) return;
            if (!nodes_.contains(to) || !nodes_.at(to)->is_running || !nodes_.at(from)->is_running)
                return redial(from, to);
            links_[key(from, to)] = ++generation_;
            when_awake(from, [to](Node& n) { n.on_connected(to); });
            when_awake(to, [from](Node& n) { n.on_connected(from); });
        });
    }
    void close(NodeId from, NodeId to) {
        if (!is_linked(from, to)) return;
        links_.erase(key(from, to));
        when_awake(to, [from](Node& n) { n.on_peer_lost(from, "closed by the other side"); });
        redial(to, from);
    }
    void when_awake(NodeId id, std::function<void(Node&)> event) {
        TestNode& target = *nodes_.at(id);
        const std::uint64_t life = target.life;
        time.at(Duration{0}, [this, id, life, event = std::move(event)] {
            TestNode& now = *nodes_.at(id);
            if (!now.is_running || now.life != life) return;
            if (now.is_frozen)
                frozen_[id].push_back(event);
            else
                event(*now.node);
        });
    }
    void thaw(const std::string& name) {
        const NodeId id = protocol::node_id(name);
        nodes_.at(id)->is_frozen = false;
        for (auto& event : std::exchange(frozen_[id], {})) when_awake(id, event);
    }
    bool is_linked(NodeId a, NodeId b) const { return links_.contains(key(a, b)); }

    VirtualTime time;
    WorkerCanaries worker_canaries;        // of workers started from now on
    std::vector<std::string> unencodable;  // must stay empty

  private:
    static std::pair<NodeId, NodeId> key(NodeId a, NodeId b) {
        return a < b ? std::pair(a, b) : std::pair(b, a);
    }
    void add(const std::string& name) {
        auto made = std::make_unique<TestNode>(*this, name);
        nodes_.emplace(made->id(), std::move(made));
    }
    void start_coordinator() {
        TestNode& home = node("coordinator");
        CoordinatorOptions options = options_;
        if (const auto record = home.records.find("coordinator.epoch");
            record != home.records.end())
            options.stored_epoch = *read_epoch(record->second);
        home.is_running = true;
        home.node = std::make_unique<Coordinator>(options, home.environment());
    }
    static Result<Epoch> read_epoch(const std::vector<std::byte>& record);
    void start_worker(const std::string& name) {
        TestNode& home = node(name);
        WorkerOptions options;
        options.report.name = name;
        options.report.devices = {{"hash", memory_[name], 1'000'000'000, 1'000'000'000, "hash"}};
        options.report.architectures = {"hash"};
        options.report.formats = {"F32"};
        options.report.listen_address = name + ":1";
        options.coordinator = protocol::node_id("coordinator");
        options.coordinator_address = "coordinator:1";
        options.canaries = worker_canaries;
        if (const auto record = home.records.find("worker.epoch"); record != home.records.end())
            options.stored_epoch = *read_epoch(record->second);
        home.is_running = true;
        home.dialled.clear();
        auto worker = std::make_unique<Worker>(options, home.environment());
        Worker& started = *worker;
        home.node = std::move(worker);
        started.start();
    }
    void break_link(NodeId a, NodeId b) {
        if (!is_linked(a, b)) return;
        links_.erase(key(a, b));
        when_awake(a, [b](Node& n) { n.on_peer_lost(b, "broken"); });
        when_awake(b, [a](Node& n) { n.on_peer_lost(a, "broken"); });
        redial(a, b);
        redial(b, a);
    }
    void redial(NodeId from, NodeId to) {
        time.at(std::chrono::milliseconds(100), [this, from, to] {
            if (nodes_.at(from)->dialled.contains(to)) dial(from, to);
        });
    }
    void tick() {
        for (auto& [id, entry] : nodes_)
            if (entry->is_running && !entry->is_frozen && entry->node) entry->node->tick();
        time.at(std::chrono::milliseconds(10), [this] { tick(); });
    }

    CoordinatorOptions options_;
    std::map<NodeId, std::unique_ptr<TestNode>> nodes_;
    std::map<std::string, std::uint64_t> memory_;
    std::map<std::pair<NodeId, NodeId>, std::uint64_t> links_;  // up; value: which life of the link
    std::map<NodeId, std::vector<std::function<void(Node&)>>> frozen_;
    std::uint64_t generation_ = 0;
    std::uint64_t last_request_ = 0;
};

}  // namespace artel::cluster
