// SPDX-License-Identifier: Apache-2.0
// Membership: which workers are there, as the coordinator sees it. A worker is present from its
// report until it is lost: its link closed and not back within the grace, or silent for too long.
// Who is expected decides when planning may start. Knows nothing of stages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cluster/environment.hpp"
#include "cluster/limits.hpp"

namespace artel::cluster {

struct Member {
    protocol::WorkerReport report;
    bool is_connected = false;
    TimePoint last_heard{};
    TimePoint link_lost{};       // while not connected
    std::uint64_t progress = 0;  // of its last heartbeat
    std::uint64_t load_bytes_done = 0;
    std::uint64_t load_bytes_total = 0;
    TimePoint last_load_progress{};
    bool is_ready = false;  // holds the stage of the current epoch
};
struct LostWorker {
    NodeId node;
    std::string name;
    Error why;
};

class Membership {
  public:
    /// Planning waits for all `expected_names` and for at least `expected_count` workers.
    Membership(std::vector<std::string> expected_names, std::uint32_t expected_count,
               const Timeouts& timeouts);

    /// False (and nothing changed) when another present worker has the same id but another name,
    /// or the table is full.
    bool on_report(NodeId node, protocol::WorkerReport report, TimePoint now);
    void on_link_lost(NodeId node, TimePoint now);
    void heard(NodeId node, TimePoint now);
    void remove(NodeId node);
    /// We stood still for `stall` and heard nobody: nobody is to blame for it.
    void forgive(Duration stall);
    /// Takes out and returns the workers that are lost by now.
    std::vector<LostWorker> expire(TimePoint now);

    Member* find(NodeId node);
    const Member* find(NodeId node) const;
    const std::map<NodeId, Member>& members() const { return members_; }
    std::map<NodeId, Member>& members() { return members_; }
    bool is_complete() const;
    /// The planner's order: expected names as given, then the others by name.
    std::vector<NodeId> in_order() const;
    /// "waiting for worker b, c and 1 more": empty when complete.
    std::string missing() const;

  private:
    std::vector<std::string> expected_names_;
    std::uint32_t expected_count_;
    Timeouts timeouts_;
    std::map<NodeId, Member> members_;
};

}  // namespace artel::cluster
