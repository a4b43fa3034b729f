// SPDX-License-Identifier: Apache-2.0
#include "runtime/loopback_transport.hpp"

namespace artel::runtime {

class LoopbackNetwork::Door : public cluster::Transport {
  public:
    Door(LoopbackNetwork& network, cluster::NodeId self) : network_(network), self_(self) {}

    void send(cluster::NodeId to, cluster::Message message) override {
        if (!network_.links_.contains({self_, to})) return;
        auto kept = std::make_shared<cluster::Message>(std::move(message));
        network_.deliver(to, [from = self_, kept](cluster::Node& node) {
            node.on_message(from, std::move(*kept));
        });
    }
    void connect(cluster::NodeId peer, const std::string&) override {
        if (!network_.links_.insert({self_, peer}).second) return;
        network_.links_.insert({peer, self_});
        network_.deliver(peer, [from = self_](cluster::Node& node) { node.on_connected(from); });
        network_.deliver(self_, [peer](cluster::Node& node) { node.on_connected(peer); });
    }
    void disconnect(cluster::NodeId peer) override {
        if (network_.links_.erase({self_, peer}) == 0) return;
        network_.links_.erase({peer, self_});
        network_.deliver(
            peer, [from = self_](cluster::Node& node) { node.on_peer_lost(from, "disconnected"); });
    }

  private:
    LoopbackNetwork& network_;
    cluster::NodeId self_;
};

LoopbackNetwork::LoopbackNetwork(EventLoop& loop) : loop_(loop) {}
LoopbackNetwork::~LoopbackNetwork() = default;

cluster::Transport& LoopbackNetwork::door(cluster::NodeId id) {
    auto& door = doors_[id];
    if (!door) door = std::make_unique<Door>(*this, id);
    return *door;
}

void LoopbackNetwork::deliver(cluster::NodeId to, std::function<void(cluster::Node&)> event) {
    loop_.post([this, to, event = std::move(event)] {
        const auto found = nodes_.find(to);
        if (found != nodes_.end() && found->second != nullptr) event(*found->second);
    });
}

}  // namespace artel::runtime
