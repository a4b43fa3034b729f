// SPDX-License-Identifier: Apache-2.0
// SimulatedStorage: disks on virtual time. A worker's load takes the time its disk needs and may
// ask the coordinator for ranges, as a worker without a local copy does; the bytes of the fake
// model are a function of (tensor, offset), so what arrives can be checked. Records survive a crash
// once their answer has come.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/environment.hpp"
#include "simulation/event_queue.hpp"

namespace artel::simulation {

/// What outlives a crash of the node.
struct Disk {
    std::map<std::string, std::vector<std::byte>> records;
    Duration latency = std::chrono::milliseconds(2);
    std::uint64_t bytes_per_second = 500'000'000;
    bool fails_next_load = false;
    bool streams_weights = false;  // no local copy: ranges are asked for
};

class SimulatedStorage final : public cluster::Storage {
  public:
    using OnEvent = std::function<void(cluster::StorageEvent)>;
    SimulatedStorage(EventQueue& queue, Disk& disk, OnEvent on_event,
                     std::function<void(protocol::AssignStage)> on_loaded,
                     std::function<void(std::string)> on_violation)
        : queue_(queue),
          disk_(disk),
          on_event_(std::move(on_event)),
          on_loaded_(std::move(on_loaded)),
          on_violation_(std::move(on_violation)) {}

    void load(const protocol::AssignStage& assignment) override;
    void unload() override {
        ++load_;
        held_.reset();
    }
    void supply(protocol::WeightsChunk chunk) override;
    void read(cluster::NodeId requester, const protocol::WeightsRequest& request) override;
    void put(const std::string& key, std::vector<std::byte> record) override;

  private:
    void advance(std::uint64_t load, std::uint64_t bytes_done);
    void ask(std::uint64_t load);
    void finish(std::uint64_t load);

    EventQueue& queue_;
    Disk& disk_;
    OnEvent on_event_;
    std::function<void(protocol::AssignStage)> on_loaded_;
    std::function<void(std::string)> on_violation_;
    std::uint64_t load_ = 0;  // number of the current load
    protocol::AssignStage assignment_;
    std::uint32_t ranges_left_ = 0;
    std::optional<protocol::AssignStage> held_;  // weights that need not be loaded again
};

}  // namespace artel::simulation
