// SPDX-License-Identifier: Apache-2.0
#include "simulation/network.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "protocol/frame.hpp"

namespace artel::simulation {

using cluster::NodeId;

LinkQuality Network::quality(NodeId a, NodeId b) const {
    const auto found = qualities_.find(ordered(a, b));
    return found == qualities_.end() ? default_quality_ : found->second;
}

void Network::set_quality(NodeId a, NodeId b, LinkQuality quality) {
    qualities_[ordered(a, b)] = quality;
}

bool Network::is_current(NodeId a, NodeId b, std::uint64_t link) const {
    const auto found = links_.find(ordered(a, b));
    return found != links_.end() && found->second.is_up && found->second.number == link;
}

void Network::send(NodeId from, NodeId to, const cluster::Message& message) {
    const auto found = links_.find(ordered(from, to));
    if (found == links_.end() || !found->second.is_up) return;
    auto encoded = protocol::encode(message);
    ARTEL_CHECK(encoded.ok(), "a node sent what the wire cannot carry");
    const std::uint64_t bytes =
        encoded->body.size() + encoded->payload.size() + protocol::kFrameHeaderBytes;
    const LinkQuality link = quality(from, to);
    Direction& direction = directions_[{from, to}];
    TimePoint& busy = direction.busy_until[static_cast<std::size_t>(encoded->lane)];
    const Duration transfer(static_cast<std::int64_t>(
        static_cast<double>(bytes) / static_cast<double>(link.bytes_per_second) * 1e9));
    busy = std::max(busy, queue_.now()) + transfer;
    Duration delay = link.latency;
    if (link.jitter > Duration::zero())
        delay += Duration(static_cast<std::int64_t>(
            random_.below(static_cast<std::uint64_t>(link.jitter.count()))));
    // In order within the lane, whatever the jitter.
    busy = std::max(busy, queue_.now() + delay - link.latency);
    queue_.at(busy + link.latency, [this, from, to, number = found->second.number,
                                    message = *std::move(encoded)]() mutable {
        if (blocked_.contains({from, to})) {
            directions_[{from, to}].held.emplace_back(
                number, [this, from, to, number, message = std::move(message)] {
                    arrive(from, to, number, message);
                });
            return;
        }
        arrive(from, to, number, message);
    });
}

void Network::arrive(NodeId from, NodeId to, std::uint64_t link,
                     const protocol::EncodedMessage& message) {
    if (!is_current(from, to, link)) return;
    trace_(from, to, message);
    // Through frames, so that the simulated wire is the real one.
    std::vector<protocol::EncodedMessage> arrived;
    protocol::FrameReader reader(message.lane);
    for (const protocol::Frame& frame : protocol::make_frames(message, 1)) {
        std::vector<std::byte> bytes = frame.head;
        bytes.insert(bytes.end(), frame.payload.span().begin(), frame.payload.span().end());
        if (damages_next_ && !frame.payload.empty()) {
            damages_next_ = false;
            bytes.back() ^= std::byte{1};
        }
        if (!reader.read(bytes, arrived).ok())
            return break_link(from, to);  // damaged: the connection is closed
    }
    for (protocol::EncodedMessage& one : arrived) {
        auto decoded = protocol::decode(one);
        ARTEL_CHECK(decoded.ok(), "what one node encodes another can decode");
        auto kept = std::make_shared<cluster::Message>(*std::move(decoded));
        deliver_(to,
                 [from, kept](cluster::Node& node) { node.on_message(from, std::move(*kept)); });
    }
}

void Network::connect(NodeId from, NodeId to) {
    if (!dialling_.insert({from, to}).second) return;
    dial(from, to);
}

void Network::dial(NodeId from, NodeId to) {
    queue_.after(quality(from, to).latency * 4, [this, from, to] {  // TCP and TLS handshakes
        if (!dialling_.contains({from, to})) return;
        Link& link = links_[ordered(from, to)];
        if (link.is_up) return;
        if (!is_up_(from) || !is_up_(to) || blocked_.contains({from, to}) ||
            blocked_.contains({to, from}))
            return dial_later(from, to, std::chrono::milliseconds(100));
        tell_half_open(from, to);
        tell_half_open(to, from);
        link = {.number = ++last_link_, .is_up = true};
        directions_.erase({from, to});
        directions_.erase({to, from});
        deliver_(to, [from](cluster::Node& node) { node.on_connected(from); });
        deliver_(from, [to](cluster::Node& node) { node.on_connected(to); });
    });
}

void Network::dial_later(NodeId from, NodeId to, Duration delay) {
    queue_.after(delay, [this, from, to] {
        if (dialling_.contains({from, to})) dial(from, to);
    });
}

void Network::close(NodeId a, NodeId b, const char* why, bool tell_a, bool tell_b) {
    const auto found = links_.find(ordered(a, b));
    if (found == links_.end() || !found->second.is_up) return;
    found->second.is_up = false;
    if (tell_a) deliver_(a, [b, why](cluster::Node& node) { node.on_peer_lost(b, why); });
    if (tell_b) deliver_(b, [a, why](cluster::Node& node) { node.on_peer_lost(a, why); });
    if (!tell_a) half_open_.insert({a, b});
    if (!tell_b) half_open_.insert({b, a});
    for (const Pair& pair : {Pair{a, b}, Pair{b, a}})
        if (dialling_.contains(pair) && !half_open_.contains(pair))
            dial_later(pair.first, pair.second, std::chrono::milliseconds(20));
}

/// A new link takes the place of one that this node still believed in.
void Network::tell_half_open(NodeId node, NodeId peer) {
    if (half_open_.erase({node, peer}) == 0) return;
    deliver_(node, [peer](cluster::Node& behind) {
        behind.on_peer_lost(peer, "replaced by a newer link");
    });
}

void Network::disconnect(NodeId from, NodeId to) {
    dialling_.erase({from, to});
    close(from, to, "closed by the peer", false, true);
    half_open_.erase({from, to});
}

void Network::clog(NodeId from, NodeId to, protocol::Lane lane, Duration time) {
    TimePoint& busy = directions_[{from, to}].busy_until[static_cast<std::size_t>(lane)];
    busy = std::max(busy, queue_.now() + time);
}

void Network::break_link(NodeId a, NodeId b) {
    close(a, b, "connection reset", true, true);
}

void Network::unblock_all() {
    blocked_.clear();
    for (auto& [pair, direction] : directions_) {
        for (auto& [number, event] : direction.held) queue_.after(Duration::zero(), event);
        direction.held.clear();
    }
}

void Network::node_down(NodeId node, bool is_noticed) {
    std::erase_if(dialling_, [node](const Pair& pair) { return pair.first == node; });
    std::vector<Pair> broken;
    for (const auto& [pair, link] : links_)
        if (link.is_up && (pair.first == node || pair.second == node)) broken.push_back(pair);
    for (const Pair& pair : broken) {
        const NodeId other = pair.first == node ? pair.second : pair.first;
        close(node, other, "connection reset", false, is_noticed);
    }
    std::erase_if(half_open_, [node](const Pair& pair) { return pair.first == node; });
}

std::vector<std::pair<NodeId, NodeId>> Network::links() const {
    std::vector<Pair> up;
    for (const auto& [pair, link] : links_)
        if (link.is_up) up.push_back(pair);
    return up;
}

}  // namespace artel::simulation
