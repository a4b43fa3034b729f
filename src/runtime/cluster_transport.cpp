// SPDX-License-Identifier: Apache-2.0
#include "runtime/cluster_transport.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "protocol/version.hpp"
#include "runtime/system_seed.hpp"

namespace artel::runtime {
namespace {

using cluster::NodeId;
using std::chrono::milliseconds;

constexpr Duration kFirstDelay = milliseconds(100);
constexpr Duration kDelayMax = milliseconds(2000);

constexpr net::FrameFormat kMessageFormat{
    protocol::kFrameHeaderBytes, [](std::span<const std::byte> bytes) -> Result<std::uint64_t> {
        ARTEL_ASSIGN(const protocol::FrameHeader header, protocol::read_frame_header(bytes));
        return std::uint64_t{header.header_len} + header.body_len + header.payload_len;
    }};

/// Head and payload as they go into a lane's queue: one buffer when small, else the payload
/// uncopied.
void append_buffers(protocol::Frame frame, std::vector<SharedBytes>& buffers) {
    constexpr std::size_t kCopyMax = 16 * 1024;
    if (frame.payload.size() <= kCopyMax) {
        frame.head.insert(frame.head.end(), frame.payload.span().begin(),
                          frame.payload.span().end());
        buffers.emplace_back(std::move(frame.head));
        return;
    }
    buffers.emplace_back(std::move(frame.head));
    buffers.push_back(std::move(frame.payload));
}

}  // namespace

ClusterTransport::ClusterTransport(EventLoop& loop, std::shared_ptr<net::TlsContext> context,
                                   ClusterTransportOptions options)
    : loop_(loop), jitter_(system_seed()) {
    net::TransportOptions transport{.versions = {.min = protocol::kVersionMin,
                                                 .max = protocol::kVersion,
                                                 .schema_hash = protocol::kSchemaHash},
                                    .format = kMessageFormat,
                                    .limits = options.limits};
    net::TransportEvents events;
    // The callbacks only come on the loop, and none after stop(), which the owner calls first.
    events.on_link_up = [this](const std::string& name, const std::string&, std::uint16_t) {
        on_link_up(name);
    };
    events.on_frame = [this](const std::string& name, std::size_t lane, SharedBytes frame) {
        on_frame(name, lane, frame);
    };
    events.on_link_down = [this](const std::string& name, const Error& why) {
        on_link_down(name, why);
    };
    events.on_enrol = std::move(options.on_enrol);
    tls_ = net::TlsTransport::create(loop.io(), loop.strand(), std::move(context), transport,
                                     std::move(events));
}

ClusterTransport::~ClusterTransport() {
    *is_alive_ = false;
}

void ClusterTransport::stop() {
    *is_alive_ = false;
    tls_->stop();
    peers_.clear();
}

void ClusterTransport::send(NodeId to, cluster::Message message) {
    const auto found = peers_.find(to);
    if (found == peers_.end() || !found->second.is_linked) return;  // on_peer_lost told already
    const auto encoded = protocol::encode(message);
    if (!encoded.ok()) {
        log_error("message not sent", {{"message", protocol::name_of(message)},
                                       {"error", std::string(encoded.status().message())}});
        return;
    }
    std::vector<SharedBytes> buffers;
    for (protocol::Frame& frame : protocol::make_frames(*encoded, protocol::kVersion))
        append_buffers(std::move(frame), buffers);
    for (SharedBytes& buffer : buffers) {
        const Error error = tls_->send(found->second.name, static_cast<std::size_t>(encoded->lane),
                                       std::move(buffer));
        if (error.ok()) continue;
        // A lane with a hole in it is of no use: end the link; its owner hears of it later.
        loop_.post([this, alive = is_alive_, name = found->second.name, error] {
            if (*alive) tls_->disconnect(name, error);
        });
        return;
    }
}

void ClusterTransport::connect(NodeId id, const std::string& address) {
    Peer& peer = peers_[id];
    const bool is_new = peer.address != address;
    peer.address = address;
    if (is_new) peer.delay = Duration::zero();
    if (!peer.is_linked && !peer.is_dialling && is_new) dial(id);
}

void ClusterTransport::disconnect(NodeId id) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    const std::string name = found->second.name;
    const bool was_linked = found->second.is_linked;
    peers_.erase(found);  // first, so that on_link_down finds nobody to tell
    if (was_linked) tls_->disconnect(name, cancelled("closed by this side"));
}

void ClusterTransport::dial(NodeId id) {
    Peer& peer = peers_.at(id);
    peer.is_dialling = true;
    const auto check = [id](const std::string& name) {
        return protocol::node_id(name) == id
                   ? ok()
                   : unauthenticated("node '{}' answers there, another was expected", name);
    };
    tls_->dial(peer.address, check, [this, alive = is_alive_, id](const Error& error) {
        if (!*alive) return;
        const auto found = peers_.find(id);
        if (found == peers_.end()) return;
        found->second.is_dialling = false;
        if (error.ok()) {
            found->second.delay = Duration::zero();
            found->second.refusal.clear();
            return;
        }
        note_failed_dial(found->second, error);
        dial_later(id);
    });
}

/// A peer that is not there yet is nothing to speak of; one that refuses us is, once.
void ClusterTransport::note_failed_dial(Peer& peer, const Error& error) {
    const std::string text(error.message());
    const bool is_refusal = error.code() == ErrorCode::kFailedPrecondition;
    if (!is_refusal || peer.refusal == text)
        return log_debug("dialling failed", {{"address", peer.address}, {"error", text}});
    peer.refusal = text;
    log_warning("not let in; trying again until it is", {{"error", text}});
}

void ClusterTransport::dial_later(NodeId id) {
    Peer& peer = peers_.at(id);
    if (peer.address.empty() || peer.is_dialling || peer.is_linked) return;
    peer.is_dialling = true;  // the pause counts: one attempt at a time
    peer.delay = peer.delay == Duration::zero() ? kFirstDelay : std::min(peer.delay * 2, kDelayMax);
    const auto jittered = Duration(static_cast<std::int64_t>(
        static_cast<double>(peer.delay.count()) * (0.5 + 0.5 * jitter_.unit())));
    auto timer = std::make_shared<boost::asio::steady_timer>(loop_.strand());
    timer->expires_after(jittered);
    timer->async_wait([this, alive = is_alive_, id, timer](boost::system::error_code cancelled) {
        if (cancelled || !*alive) return;
        const auto found = peers_.find(id);
        if (found == peers_.end()) return;
        found->second.is_dialling = false;
        if (!found->second.is_linked && !found->second.address.empty()) dial(id);
    });
}

void ClusterTransport::on_link_up(const std::string& name) {
    const NodeId id = protocol::node_id(name);
    Peer& peer = peers_[id];
    peer.name = name;
    peer.is_linked = true;
    for (std::size_t lane = 0; lane < net::kLaneCount; ++lane)
        peer.readers[lane].emplace(static_cast<protocol::Lane>(lane));
    node_->on_connected(id);
}

void ClusterTransport::on_frame(const std::string& name, std::size_t lane,
                                const SharedBytes& frame) {
    const NodeId id = protocol::node_id(name);
    std::vector<protocol::EncodedMessage> messages;
    const auto found = peers_.find(id);
    if (found == peers_.end() || !found->second.is_linked) return;
    Error error = found->second.readers[lane]->read(frame.span(), messages);
    for (const protocol::EncodedMessage& encoded : messages) {
        auto message = protocol::decode(encoded);
        if (!message.ok()) {
            error = message.status();
            break;
        }
        node_->on_message(id, *std::move(message));
        // The handler may have closed this very link.
        const auto still = peers_.find(id);
        if (still == peers_.end() || !still->second.is_linked) return;
    }
    if (error.ok()) return;
    log_warning("a peer sent something malformed; closing the link",
                {{"peer", name}, {"error", std::string(error.message())}});
    tls_->disconnect(name, error);
}

void ClusterTransport::on_link_down(const std::string& name, const Error& why) {
    const NodeId id = protocol::node_id(name);
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    found->second.is_linked = false;
    if (found->second.address.empty())
        peers_.erase(found);
    else
        dial_later(id);
    node_->on_peer_lost(id, std::string(why.message()));
}

}  // namespace artel::runtime
