// SPDX-License-Identifier: Apache-2.0
#include "cluster/membership.hpp"

#include <algorithm>
#include <utility>

namespace artel::cluster {

Membership::Membership(std::vector<std::string> expected_names, std::uint32_t expected_count,
                       const Timeouts& timeouts)
    : expected_names_(std::move(expected_names)),
      expected_count_(
          std::max({expected_count, 1U, static_cast<std::uint32_t>(expected_names_.size())})),
      timeouts_(timeouts) {}

bool Membership::on_report(NodeId node, protocol::WorkerReport report, TimePoint now) {
    const auto found = members_.find(node);
    if (found == members_.end() && members_.size() >= kWorkersMax) return false;
    if (found != members_.end() && found->second.report.name != report.name) return false;
    Member& member = members_[node];
    member.report = std::move(report);
    member.is_connected = true;
    member.last_heard = now;
    return true;
}

void Membership::on_link_lost(NodeId node, TimePoint now) {
    Member* member = find(node);
    if (member == nullptr || !member->is_connected) return;
    member->is_connected = false;
    member->link_lost = now;
}

void Membership::heard(NodeId node, TimePoint now) {
    if (Member* member = find(node)) member->last_heard = now;
}

void Membership::remove(NodeId node) {
    members_.erase(node);
}

void Membership::forgive(Duration stall) {
    for (auto& [node, member] : members_) {
        member.last_heard += stall;
        member.link_lost += stall;
        member.last_load_progress += stall;
    }
}

std::vector<LostWorker> Membership::expire(TimePoint now) {
    std::vector<LostWorker> lost;
    for (const auto& [node, member] : members_) {
        const std::string& name = member.report.name;
        if (!member.is_connected && now - member.link_lost >= timeouts_.reconnect_grace)
            lost.push_back({node, name,
                            unavailable("its connection closed and was not back within {:.1f} s",
                                        seconds(timeouts_.reconnect_grace))});
        else if (now - member.last_heard >= timeouts_.heartbeat_lost)
            lost.push_back({node, name,
                            deadline_exceeded("nothing heard of it for {:.1f} s",
                                              seconds(timeouts_.heartbeat_lost))});
    }
    for (const LostWorker& worker : lost) members_.erase(worker.node);
    return lost;
}

Member* Membership::find(NodeId node) {
    const auto found = members_.find(node);
    return found == members_.end() ? nullptr : &found->second;
}

const Member* Membership::find(NodeId node) const {
    const auto found = members_.find(node);
    return found == members_.end() ? nullptr : &found->second;
}

bool Membership::is_complete() const {
    return missing().empty();
}

std::vector<NodeId> Membership::in_order() const {
    std::vector<NodeId> order;
    for (const std::string& name : expected_names_)
        if (members_.contains(protocol::node_id(name))) order.push_back(protocol::node_id(name));
    std::vector<std::pair<std::string, NodeId>> others;
    for (const auto& [node, member] : members_)
        if (std::find(order.begin(), order.end(), node) == order.end())
            others.emplace_back(member.report.name, node);
    std::sort(others.begin(), others.end());
    for (const auto& [name, node] : others) order.push_back(node);
    return order;
}

std::string Membership::missing() const {
    std::uint32_t present = 0;
    for (const auto& [node, member] : members_) present += member.is_connected ? 1 : 0;
    std::string names;
    std::uint32_t named = 0;
    for (const std::string& name : expected_names_) {
        const Member* member = find(protocol::node_id(name));
        if (member != nullptr && member->is_connected) continue;
        names += names.empty() ? name : ", " + name;
        ++named;
    }
    const std::uint32_t wanted = present < expected_count_ ? expected_count_ - present : 0;
    if (named == 0 && wanted == 0) return "";
    if (named == 0)
        return fmt::format("waiting for {} more worker{}", wanted, wanted == 1 ? "" : "s");
    if (wanted <= named) return fmt::format("waiting for worker {}", names);
    return fmt::format("waiting for worker {} and {} more", names, wanted - named);
}

}  // namespace artel::cluster
