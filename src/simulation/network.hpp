// SPDX-License-Identifier: Apache-2.0
// Network: links between simulated nodes. As over real ones, every message is encoded, queued in
// its lane (latency, bandwidth) and decoded on arrival; nothing is shared. A link may be slow,
// stall, break with all that is in flight, be cut in one or both directions, or damage a payload
// (which the checksum must catch). Lanes are in order each and independent of each other.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "cluster/environment.hpp"
#include "protocol/codec.hpp"
#include "simulation/event_queue.hpp"

namespace artel::simulation {

struct LinkQuality {
    Duration latency = std::chrono::microseconds(300);
    std::uint64_t bytes_per_second = 100'000'000;
    Duration jitter = Duration::zero();  // added, uniform
};

class Network {
  public:
    /// `deliver` runs an event of the node `to` (or drops it, when that node is down).
    using Deliver =
        std::function<void(cluster::NodeId to, std::function<void(cluster::Node&)> event)>;
    using IsUp = std::function<bool(cluster::NodeId)>;
    using Trace = std::function<void(cluster::NodeId from, cluster::NodeId to,
                                     const protocol::EncodedMessage&)>;
    Network(EventQueue& queue, Random random, Deliver deliver, IsUp is_up, Trace trace)
        : queue_(queue),
          random_(random),
          deliver_(std::move(deliver)),
          is_up_(std::move(is_up)),
          trace_(std::move(trace)) {}

    // What nodes do (through their Transport).
    void send(cluster::NodeId from, cluster::NodeId to, const cluster::Message& message);
    void connect(cluster::NodeId from, cluster::NodeId to);
    void disconnect(cluster::NodeId from, cluster::NodeId to);

    // What the world does.
    void set_quality(cluster::NodeId a, cluster::NodeId b, LinkQuality quality);
    void set_default_quality(LinkQuality quality) { default_quality_ = quality; }
    /// Closes the link; both ends learn of it. Diallers dial again.
    void break_link(cluster::NodeId a, cluster::NodeId b);
    /// What is sent from `from` to `to` waits until unblock(); new links cannot be made.
    void block(cluster::NodeId from, cluster::NodeId to) { blocked_.insert({from, to}); }
    void unblock_all();
    /// The node is gone: with `is_noticed` its peers see closed links, else only silence.
    void node_down(cluster::NodeId node, bool is_noticed);
    /// What is sent from now on in one lane arrives `time` later, behind whatever blocks it.
    void clog(cluster::NodeId from, cluster::NodeId to, protocol::Lane lane, Duration time);
    void damage_next_payload() { damages_next_ = true; }
    std::vector<std::pair<cluster::NodeId, cluster::NodeId>> links() const;

  private:
    using Pair = std::pair<cluster::NodeId, cluster::NodeId>;
    struct Link {
        std::uint64_t number = 0;  // a new one each time it is made
        bool is_up = false;
    };
    struct Direction {
        std::array<TimePoint, protocol::kLaneCount> busy_until{};
        std::vector<std::pair<std::uint64_t, std::function<void()>>> held;  // while blocked
    };
    static Pair ordered(cluster::NodeId a, cluster::NodeId b) {
        return a < b ? Pair{a, b} : Pair{b, a};
    }
    LinkQuality quality(cluster::NodeId a, cluster::NodeId b) const;
    void dial(cluster::NodeId from, cluster::NodeId to);
    void dial_later(cluster::NodeId from, cluster::NodeId to, Duration delay);
    void arrive(cluster::NodeId from, cluster::NodeId to, std::uint64_t link,
                const protocol::EncodedMessage& message);
    void close(cluster::NodeId a, cluster::NodeId b, const char* why, bool tell_a, bool tell_b);
    void tell_half_open(cluster::NodeId node, cluster::NodeId peer);
    bool is_current(cluster::NodeId a, cluster::NodeId b, std::uint64_t link) const;

    EventQueue& queue_;
    Random random_;
    Deliver deliver_;
    IsUp is_up_;
    Trace trace_;
    LinkQuality default_quality_;
    std::map<Pair, LinkQuality> qualities_;  // ordered pairs
    std::map<Pair, Link> links_;             // ordered pairs
    std::map<Pair, Direction> directions_;
    std::set<Pair> dialling_;   // (from, to): wanted until disconnect
    std::set<Pair> half_open_;  // (node, peer): node does not know yet that the link is gone
    std::set<Pair> blocked_;
    std::uint64_t last_link_ = 0;
    bool damages_next_ = false;
};

}  // namespace artel::simulation
