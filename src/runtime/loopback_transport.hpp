// SPDX-License-Identifier: Apache-2.0
// LoopbackNetwork: cluster::Transport between nodes of one process and one loop (`artel run`,
// `eval`, `bench` without worker processes). Messages are moved, not encoded; links never break.
// Everything on the loop.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "cluster/environment.hpp"
#include "runtime/event_loop.hpp"

namespace artel::runtime {

class LoopbackNetwork {
  public:
    explicit LoopbackNetwork(EventLoop& loop);
    ~LoopbackNetwork();

    /// The door of node `id`; lives as long as the network.
    cluster::Transport& door(cluster::NodeId id);
    /// The node behind the door gets events from now on; nullptr: no more.
    void attach(cluster::NodeId id, cluster::Node* node) { nodes_[id] = node; }

  private:
    class Door;
    void deliver(cluster::NodeId to, std::function<void(cluster::Node&)> event);

    EventLoop& loop_;
    std::map<cluster::NodeId, std::unique_ptr<Door>> doors_;
    std::map<cluster::NodeId, cluster::Node*> nodes_;
    std::set<std::pair<cluster::NodeId, cluster::NodeId>> links_;  // both directions
};

}  // namespace artel::runtime
