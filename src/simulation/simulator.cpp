// SPDX-License-Identifier: Apache-2.0
#include "simulation/simulator.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.hpp"
#include "cluster/term.hpp"

namespace artel::simulation {

using cluster::NodeId;
using std::chrono::milliseconds;

/// A node's way into the network.
class Simulator::Door final : public cluster::Transport {
  public:
    Door(Network& network, NodeId self) : network_(network), self_(self) {}
    void send(NodeId to, cluster::Message message) override { network_.send(self_, to, message); }
    void connect(NodeId peer, const std::string&) override { network_.connect(self_, peer); }
    void disconnect(NodeId peer) override { network_.disconnect(self_, peer); }

  private:
    Network& network_;
    NodeId self_;
};

class Simulator::Eye final : public cluster::Observer {
  public:
    Eye(Simulator& simulator, std::string name) : simulator_(simulator), name_(std::move(name)) {}
    void note(cluster::Severity, const std::string& text) override {
        if (simulator_.on_note)
            simulator_.on_note(fmt::format(
                "{:.6f} {}: {}", seconds(simulator_.queue_.now().time_since_epoch()), name_, text));
    }
    void covered(std::string_view mark) override { simulator_.marks_.emplace(mark); }
    void worker_lost(NodeId, const std::string& name, const Error& why) override {
        note(cluster::Severity::Warning,
             fmt::format("lost {}: {}", name, std::string(why.message())));
    }
    void health_changed() override {}

  private:
    Simulator& simulator_;
    std::string name_;
};

class Simulator::Sink final : public cluster::RequestSink {
  public:
    Sink(Simulator& simulator, std::shared_ptr<ClientRequest> client)
        : simulator_(simulator), client_(std::move(client)) {}
    void on_refused(const cluster::Refusal& refusal) override {
        check_open("a refusal");
        client_->refused = refusal;
    }
    void on_token(std::uint32_t choice, const cluster::Token& token) override {
        if (client_->was_orphaned) return;
        check_open("a token");
        if (choice >= client_->tokens.size())
            return bad(fmt::format("a token of choice {}", choice));
        if (client_->finished[choice]) bad("a token after the choice had finished");
        auto& tokens = client_->tokens[choice];
        const std::uint64_t expected = client_->request.prompt.size() + tokens.size();
        if (token.position != expected)
            bad(fmt::format("a token of position {}, expected {}", token.position, expected));
        tokens.push_back(token.id);
        simulator_.trace(mix(client_->id.value, token.id));
    }
    void on_logits(std::uint32_t, std::uint32_t, SharedBytes) override {}
    void on_finished(std::uint32_t choice, cluster::FinishReason reason) override {
        if (client_->was_orphaned) return;
        check_open("a finish");
        if (choice >= client_->finished.size() || client_->finished[choice])
            return bad("a second finish");
        client_->finished[choice] = reason;
    }
    void on_failed(const cluster::RequestFailure& failure) override {
        if (client_->was_orphaned) return;
        check_open("a failure");
        client_->failed = failure;
    }

  private:
    void check_open(const char* what) {
        if (client_->is_over()) bad(fmt::format("{} after the request was over", what));
    }
    void bad(const std::string& text) {
        simulator_.violation(fmt::format("request {}: {}", client_->id.value, text));
    }
    Simulator& simulator_;
    std::shared_ptr<ClientRequest> client_;
};

struct Simulator::Node {
    std::size_t index = 0;
    NodeSpec spec;
    NodeId id;
    Random random{0};
    Disk disk;
    std::uint64_t incarnation = 0;
    bool is_up = false;
    bool is_frozen = false;
    std::vector<std::function<void()>> missed;  // events while frozen
    std::unique_ptr<Door> door;
    std::unique_ptr<Eye> eye;
    std::unique_ptr<HashExecutor> executor;
    std::unique_ptr<SimulatedStorage> storage;
    std::unique_ptr<cluster::Coordinator> coordinator;
    std::unique_ptr<cluster::Worker> worker;
    // A crashed node's parts live on until the end: events that were queued may still name them.
    std::vector<std::shared_ptr<void>> graveyard;

    cluster::Node* node() {
        return coordinator ? static_cast<cluster::Node*>(coordinator.get())
                           : static_cast<cluster::Node*>(worker.get());
    }
    cluster::Environment environment(Clock& clock) {
        return {clock, *door, *executor, *storage, random, *eye};
    }
    void bury() {
        const auto keep = [this](auto& part) {
            if (part)
                graveyard.push_back(
                    std::shared_ptr<std::remove_reference_t<decltype(*part)>>(std::move(part)));
        };
        keep(coordinator);
        keep(worker);
        keep(executor);
        keep(storage);
        keep(eye);
        keep(door);
    }
};

bool ClientRequest::is_over() const {
    return refused || failed || was_orphaned ||
           std::all_of(finished.begin(), finished.end(),
                       [](const auto& reason) { return reason.has_value(); });
}

Simulator::Simulator(SimulatorOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      network_(
          queue_, random_.fork(),
          [this](NodeId to, std::function<void(cluster::Node&)> event) {
              deliver(to, std::move(event));
          },
          [this](NodeId id) {
              Node* node = find(id);
              return node != nullptr && node->is_up && !node->is_frozen;
          },
          [this](NodeId from, NodeId to, const protocol::EncodedMessage& message) {
              trace(mix(from.value, to.value));
              trace(mix(static_cast<std::uint64_t>(queue_.now().time_since_epoch().count()),
                        message.type));
          }) {
    const auto add = [this](NodeSpec spec) {
        auto node = std::make_unique<Node>();
        node->index = nodes_.size();
        node->id = protocol::node_id(spec.name);
        node->spec = std::move(spec);
        node->random = random_.fork();
        node->disk.streams_weights = options_.streams_weights;
        nodes_.push_back(std::move(node));
    };
    add({.name = "coordinator", .memory_bytes = 0, .device = {}, .bandwidth_bytes_per_second = 0});
    for (const NodeSpec& worker : options_.workers) add(worker);
    for (const auto& node : nodes_) boot(*node);
}

Simulator::~Simulator() = default;

Simulator::Node* Simulator::find(NodeId id) {
    for (const auto& node : nodes_)
        if (node->id == id) return node.get();
    return nullptr;
}

/// Posted, never called at once: a node's handler must not run inside another's.
void Simulator::deliver(NodeId to, std::function<void(cluster::Node&)> event) {
    Node* node = find(to);
    if (node == nullptr || !node->is_up) return;
    queue_.after(Duration::zero(),
                 [node, incarnation = node->incarnation, event = std::move(event)] {
                     if (!node->is_up || node->incarnation != incarnation) return;
                     if (node->is_frozen)
                         node->missed.push_back([node, event] { event(*node->node()); });
                     else
                         event(*node->node());
                 });
}

void Simulator::boot(Node& node) {
    ++node.incarnation;
    node.is_up = true;
    node.is_frozen = false;
    node.missed.clear();
    node.door = std::make_unique<Door>(network_, node.id);
    node.eye = std::make_unique<Eye>(*this, node.spec.name);
    const auto violate = [this, name = node.spec.name](const std::string& text) {
        violation(name + ": " + text);
    };
    node.executor = std::make_unique<HashExecutor>(
        queue_, options_.model, node.spec.device,
        [this, id = node.id](cluster::StepOutcome outcome) {
            deliver(id, [outcome = std::move(outcome)](cluster::Node& behind) {
                behind.on_step_done(outcome);
            });
        },
        violate);
    node.storage = std::make_unique<SimulatedStorage>(
        queue_, node.disk,
        [this, id = node.id](cluster::StorageEvent event) {
            deliver(id, [event = std::move(event)](cluster::Node& behind) {
                behind.on_storage(event);
            });
        },
        [executor = node.executor.get()](const protocol::AssignStage& assignment) {
            executor->load(assignment);
        },
        violate);
    if (node.index == 0)
        boot_coordinator(node);
    else
        boot_worker(node);
    queue_.after(
        Duration(static_cast<std::int64_t>(node.random.below(10'000'000))),
        [this, index = node.index, incarnation = node.incarnation] { tick(index, incarnation); });
}

void Simulator::boot_coordinator(Node& node) {
    cluster::CoordinatorOptions options;
    options.model = options_.model;
    options.plan = options_.plan;
    for (const NodeSpec& worker : options_.workers) options.expected_workers.push_back(worker.name);
    options.expected_count = static_cast<std::uint32_t>(options_.workers.size());
    options.limits = options_.limits;
    options.canaries = options_.coordinator_canaries;
    if (const auto found = node.disk.records.find(cluster::kCoordinatorTermKey);
        found != node.disk.records.end())
        options.stored_epoch = *cluster::read_epoch_record(found->second);
    node.coordinator =
        std::make_unique<cluster::Coordinator>(std::move(options), node.environment(queue_));
}

void Simulator::boot_worker(Node& node) {
    cluster::WorkerOptions options;
    options.report.name = node.spec.name;
    options.report.machine_id = "machine-" + node.spec.name;
    options.report.machine_memory_bytes = node.spec.memory_bytes;
    options.report.threads = 1;
    options.report.devices = {{.name = "hash",
                               .memory_bytes = node.spec.memory_bytes,
                               .bandwidth_bytes_per_second = node.spec.bandwidth_bytes_per_second,
                               .flops_per_second = 1'000'000'000'000,
                               .arithmetic_class = "hash"}};
    options.report.architectures = {options_.model.architecture};
    options.report.formats = options_.model.formats;
    options.report.listen_address = "sim:" + node.spec.name;
    options.coordinator = nodes_.front()->id;
    options.coordinator_address = "sim:coordinator";
    options.timeouts = options_.limits.timeouts;
    options.canaries = options_.worker_canaries;
    if (const auto found = node.disk.records.find(cluster::kWorkerEpochKey);
        found != node.disk.records.end())
        options.stored_epoch = *cluster::read_epoch_record(found->second);
    node.worker = std::make_unique<cluster::Worker>(std::move(options), node.environment(queue_));
    node.worker->start();
}

void Simulator::tick(std::size_t index, std::uint64_t incarnation) {
    Node& node = *nodes_[index];
    if (!node.is_up || node.incarnation != incarnation) return;
    if (!node.is_frozen) node.node()->tick();
    queue_.after(milliseconds(10), [this, index, incarnation] { tick(index, incarnation); });
}

bool Simulator::run_until(const std::function<bool()>& condition, Duration patience) {
    const TimePoint end = queue_.now() + patience;
    while (!condition()) {
        if (queue_.now() >= end) return false;
        run_for(milliseconds(10));
    }
    return true;
}

std::size_t Simulator::submit(cluster::Request request) {
    auto client = std::make_shared<ClientRequest>();
    client->id = cluster::RequestId{++last_request_};
    client->request = request;
    client->tokens.resize(request.choices);
    client->finished.resize(request.choices);
    client->submitted = queue_.now();
    requests_.push_back(client);
    cluster::Coordinator* const target = coordinator();
    if (target == nullptr) {
        client->refused = cluster::NotReady{"the coordinator is down", {}};
        return requests_.size() - 1;
    }
    auto sink = std::make_shared<Sink>(*this, client);
    if (auto refusal = target->submit(client->id, std::move(request), sink))
        sink->on_refused(*refusal);
    return requests_.size() - 1;
}

void Simulator::cancel(std::size_t index) {
    ClientRequest& client = *requests_[index];
    if (client.is_over() || client.cancelled_at) return;
    client.cancelled_at = queue_.now();
    if (cluster::Coordinator* const target = coordinator()) target->cancel(client.id);
}

NodeId Simulator::id(std::size_t node) const {
    return nodes_[node]->id;
}
bool Simulator::is_up(std::size_t node) const {
    return nodes_[node]->is_up && !nodes_[node]->is_frozen;
}
HashDevice& Simulator::device(std::size_t node) {
    return nodes_[node]->spec.device;
}
Disk& Simulator::disk(std::size_t node) {
    return nodes_[node]->disk;
}

void Simulator::crash(std::size_t index, bool is_noticed) {
    Node& node = *nodes_[index];
    if (!node.is_up) return;
    node.is_up = false;
    node.executor->cancel({});
    node.storage->unload();
    node.bury();
    network_.node_down(node.id, is_noticed);
    if (index != 0) return;
    for (const auto& client : requests_)
        if (!client->is_over()) client->was_orphaned = true;
}

void Simulator::restart(std::size_t index) {
    if (!nodes_[index]->is_up) boot(*nodes_[index]);
}

void Simulator::freeze(std::size_t index) {
    if (nodes_[index]->is_up) nodes_[index]->is_frozen = true;
}

void Simulator::wake(std::size_t index) {
    Node& node = *nodes_[index];
    if (!node.is_up || !node.is_frozen) return;
    node.is_frozen = false;
    const auto missed = std::exchange(node.missed, {});
    for (const auto& event : missed)
        queue_.after(Duration::zero(), [&node, incarnation = node.incarnation, event] {
            if (node.is_up && node.incarnation == incarnation) event();
        });
}

cluster::Coordinator* Simulator::coordinator() {
    Node& node = *nodes_.front();
    return node.is_up && !node.is_frozen ? node.coordinator.get() : nullptr;
}

const cluster::Worker* Simulator::worker(std::size_t index) const {
    return nodes_[index]->is_up ? nodes_[index]->worker.get() : nullptr;
}

bool Simulator::is_serving() {
    return coordinator() != nullptr &&
           coordinator()->health().state == cluster::ServiceState::Serving;
}

void Simulator::violation(std::string text) {
    constexpr std::size_t kKept = 20;
    if (violations_.size() < kKept)
        violations_.push_back(
            fmt::format("{:.3f} s: {}", seconds(queue_.now().time_since_epoch()), text));
}

}  // namespace artel::simulation
