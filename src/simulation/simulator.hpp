// SPDX-License-Identifier: Apache-2.0
// Simulator: a coordinator and its workers in one thread on virtual time, with a fake model,
// simulated disks and links. Nodes may crash, restart with empty memory, freeze and wake, slow
// down; links may do what network.hpp says. Same seed, same run: trace_hash() says so. Violations
// of what must always hold (checkers.hpp and the devices' own checks) are collected, not thrown.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/coordinator.hpp"
#include "cluster/worker.hpp"
#include "simulation/hash_executor.hpp"
#include "simulation/network.hpp"
#include "simulation/simulated_storage.hpp"

namespace artel::simulation {

struct NodeSpec {
    std::string name;
    std::uint64_t memory_bytes = 1ULL << 30;
    HashDevice device;
    std::uint64_t bandwidth_bytes_per_second = 50'000'000'000;
};

struct SimulatorOptions {
    std::uint64_t seed = 1;
    cluster::ModelProfile model;
    cluster::PlanRequest plan;
    cluster::Limits limits;
    std::vector<NodeSpec> workers;
    bool streams_weights = false;
    cluster::CoordinatorCanaries coordinator_canaries;
    cluster::WorkerCanaries worker_canaries;
};

/// What a client saw of one request.
struct ClientRequest {
    cluster::RequestId id;
    cluster::Request request;
    std::vector<std::vector<protocol::TokenId>> tokens;          // by choice
    std::vector<std::optional<cluster::FinishReason>> finished;  // by choice
    std::optional<cluster::RequestFailure> failed;
    std::optional<cluster::Refusal> refused;
    std::optional<TimePoint> cancelled_at;
    TimePoint submitted{};
    bool was_orphaned = false;  // its coordinator went away: a broken connection, for a client
    bool is_over() const;
};

class Simulator {
  public:
    explicit Simulator(SimulatorOptions options);
    ~Simulator();

    EventQueue& queue() { return queue_; }
    Network& network() { return network_; }
    void run_for(Duration time) { queue_.run_until(queue_.now() + time); }
    /// Runs until `condition` holds, checking every 10 ms of virtual time; false after `patience`.
    bool run_until(const std::function<bool()>& condition, Duration patience);

    // Clients.
    std::size_t submit(cluster::Request request);  // index of the request
    void cancel(std::size_t request);
    const ClientRequest& request(std::size_t index) const { return *requests_[index]; }
    std::size_t request_count() const { return requests_.size(); }

    // Nodes: index 0 is the coordinator, workers follow.
    std::size_t worker_count() const { return nodes_.size() - 1; }
    cluster::NodeId id(std::size_t node) const;
    bool is_up(std::size_t node) const;
    void crash(std::size_t node, bool is_noticed);
    void restart(std::size_t node);
    void freeze(std::size_t node);
    void wake(std::size_t node);
    HashDevice& device(std::size_t node);
    Disk& disk(std::size_t node);
    cluster::Coordinator* coordinator();  // nullptr while it is down
    const cluster::Worker* worker(std::size_t node) const;
    bool is_serving();

    // What was seen.
    void violation(std::string text);
    const std::vector<std::string>& violations() const { return violations_; }
    std::uint64_t trace_hash() const { return trace_hash_; }
    const std::set<std::string, std::less<>>& marks() const { return marks_; }
    const SimulatorOptions& options() const { return options_; }
    /// Set to see notes of all nodes.
    std::function<void(const std::string&)> on_note;

  private:
    struct Node;
    class Door;
    class Eye;
    class Sink;
    void boot(Node& node);
    void boot_coordinator(Node& node);
    void boot_worker(Node& node);
    void deliver(cluster::NodeId to, std::function<void(cluster::Node&)> event);
    void tick(std::size_t index, std::uint64_t incarnation);
    Node* find(cluster::NodeId id);
    void trace(std::uint64_t value) { trace_hash_ = mix(trace_hash_, value); }

    SimulatorOptions options_;
    Random random_;
    EventQueue queue_;
    Network network_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<std::shared_ptr<ClientRequest>> requests_;
    std::vector<std::string> violations_;
    std::set<std::string, std::less<>> marks_;
    std::uint64_t trace_hash_ = 0;
    std::uint64_t last_request_ = 0;
};

}  // namespace artel::simulation
