// SPDX-License-Identifier: Apache-2.0
// ClusterTransport: cluster::Transport over TLS links. Turns messages into frames and back, node
// ids into the names in certificates, and keeps dialling peers that were asked for (at once, then
// 0.1 s doubling to 2 s, with jitter). Runs on the loop strand only; events reach the node from
// there, never from inside a call of the node.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/environment.hpp"
#include "net/tls_transport.hpp"
#include "protocol/frame.hpp"
#include "runtime/event_loop.hpp"

namespace artel::runtime {

struct ClusterTransportOptions {
    net::TransportLimits limits;
    std::function<net::EnrolReply(const net::EnrolRequest&)> on_enrol;
};

class ClusterTransport : public cluster::Transport {
  public:
    ClusterTransport(EventLoop& loop, std::shared_ptr<net::TlsContext> context,
                     ClusterTransportOptions options);
    ~ClusterTransport() override;

    /// The node that gets the events; set before anything is dialled or listened to.
    void set_node(cluster::Node& node) { node_ = &node; }
    Result<std::uint16_t> listen(const std::string& address) { return tls_->listen(address); }
    bool is_linked(const std::string& name) const { return tls_->is_linked(name); }
    /// Stops dialling and closes all links. On the loop.
    void stop();

    void send(cluster::NodeId to, cluster::Message message) override;
    void connect(cluster::NodeId peer, const std::string& address) override;
    void disconnect(cluster::NodeId peer) override;

  private:
    struct Peer {
        std::string name;  // known once it was linked
        std::array<std::optional<protocol::FrameReader>, net::kLaneCount> readers;
        bool is_linked = false;
        std::string address;  // dialled; empty: it dials us
        Duration delay{0};
        bool is_dialling = false;
        std::string refusal;  // the last one, logged once
    };
    void dial(cluster::NodeId id);
    static void note_failed_dial(Peer& peer, const Error& error);
    void dial_later(cluster::NodeId id);
    void on_link_up(const std::string& name);
    void on_frame(const std::string& name, std::size_t lane, const SharedBytes& frame);
    void on_link_down(const std::string& name, const Error& why);

    EventLoop& loop_;
    cluster::Node* node_ = nullptr;
    std::shared_ptr<net::TlsTransport> tls_;
    std::map<cluster::NodeId, Peer> peers_;
    Random jitter_;
    std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);  // for timers that outlive us
};

}  // namespace artel::runtime
