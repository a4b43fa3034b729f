// SPDX-License-Identifier: Apache-2.0
// TlsTransport: links between nodes. A link is four TLS connections (lanes: control, decode,
// prefill, weights) to one peer, so that a large frame in one lane never delays a small one in
// another. It is up when all four are, and down when any of them closes. Frames are opaque here.
//
// Threads: made for an io_context that several threads run. Everything of this class, its callbacks
// included, runs on the `loop` strand; TLS work of a lane runs on that lane's own strand. Call the
// public functions on `loop` only. Listening accepts members of the cluster; strangers may only ask
// to be enrolled, and only where an enrolment handler is set. Limits: TransportLimits. Who dials
// whom, retries and heartbeats are the owner's business.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "net/connection.hpp"
#include "net/opening.hpp"
#include "net/tls_context.hpp"

namespace artel::net {

inline constexpr std::size_t kLaneCount = 4;

struct TransportLimits {
    ConnectionLimits connection;
    std::size_t unopened_connections_max = 512;  // accepted, but not yet a lane of a link
    Duration connect_timeout = std::chrono::seconds(5);
    Duration link_assembly_timeout = std::chrono::seconds(10);
    /// A node's name is taken while its link was heard within this time; then another process of
    /// the name may replace it. Longer than the pauses between heartbeats.
    Duration name_held_for = std::chrono::seconds(3);
};

struct TransportOptions {
    Versions versions;
    FrameFormat format{};
    TransportLimits limits;
};

struct TransportEvents {
    /// `node` is the name in the peer's certificate, `address` where it was reached or came from.
    std::function<void(const std::string& node, const std::string& address, std::uint16_t version)>
        on_link_up;
    std::function<void(const std::string& node, std::size_t lane, SharedBytes frame)> on_frame;
    std::function<void(const std::string& node, Error why)> on_link_down;
    /// Decides on a stranger's request; leave empty to refuse all.
    std::function<EnrolReply(const EnrolRequest&)> on_enrol;
};

class TlsTransport : public std::enable_shared_from_this<TlsTransport> {
  public:
    using Loop = boost::asio::strand<boost::asio::io_context::executor_type>;

    static std::shared_ptr<TlsTransport> create(boost::asio::io_context& io, Loop loop,
                                                std::shared_ptr<TlsContext> context,
                                                TransportOptions options, TransportEvents events);

    /// Binds and accepts on "host:port" (port 0: any free one) and returns the port. Errors name
    /// the address.
    Result<std::uint16_t> listen(const std::string& address);
    /// Says whether a dialled peer, named in its certificate, is the one that is wanted. Called on
    /// any of the io threads.
    using CheckName = std::function<Error(const std::string& node)>;
    /// Opens a link to "host:port"; `done` comes once: right before on_link_up, or instead of it.
    void dial(const std::string& address, CheckName check, std::function<void(Error)> done);
    Error send(const std::string& node, std::size_t lane, SharedBytes frame);
    bool is_linked(const std::string& node) const { return links_.contains(node); }
    void disconnect(const std::string& node, const Error& why);
    /// Closes everything; no callback comes afterwards.
    void stop();

    struct Link;
    struct Accepted;

  private:
    TlsTransport(boost::asio::io_context& io, Loop loop, std::shared_ptr<TlsContext> context,
                 TransportOptions options, TransportEvents events);
    void accept_next();
    void on_accepted(Connection::Socket socket);
    void on_opening(const std::shared_ptr<Accepted>& accepted);
    void enrol(const std::shared_ptr<Accepted>& accepted);
    void answer_enrolment(const std::shared_ptr<Accepted>& accepted,
                          std::span<const std::byte> body);
    void refuse(const std::shared_ptr<Accepted>& accepted, const Error& why);
    Error check_name_is_free(const std::string& node, std::uint32_t process) const;
    void add_accepted_lane(const std::shared_ptr<Accepted>& accepted, std::uint16_t version);
    void dial_lane(const std::shared_ptr<Link>& link, std::size_t lane,
                   const boost::asio::ip::tcp::endpoint& endpoint);
    void open_lane(const std::shared_ptr<Link>& link, std::size_t lane,
                   const std::shared_ptr<Connection>& connection);
    void on_lane_open(const std::shared_ptr<Link>& link, std::size_t lane,
                      std::shared_ptr<Connection> connection);
    static void close_lanes(Link& link, const Error& why);
    void fail_assembly(std::shared_ptr<Link> link, const Error& why);
    void bring_up(const std::shared_ptr<Link>& link);
    void take_down(std::shared_ptr<Link> link, const Error& why);

    boost::asio::io_context& io_;
    Loop loop_;
    std::shared_ptr<TlsContext> context_;
    TransportOptions options_;
    TransportEvents events_;
    boost::asio::ip::tcp::acceptor acceptor_;
    boost::asio::steady_timer accept_pause_;
    std::map<std::string, std::shared_ptr<Link>> links_;  // by node, up
    std::map<std::pair<std::string, std::uint32_t>, std::shared_ptr<Link>>
        assembling_;               // accepted side
    const std::uint32_t process_;  // random, not 0; as in Opening
    std::shared_ptr<std::atomic<std::size_t>> unopened_ =
        std::make_shared<std::atomic<std::size_t>>(0);
    bool is_stopped_ = false;
};

/// "host:port" or "[v6]:port". Errors: InvalidArgument quoting the text.
Result<std::pair<std::string, std::string>> split_address(const std::string& address);

/// An error for an address that other machines can't dial: 0.0.0.0 and [::] stand for every address
/// of this one.
Error check_can_be_dialled(const std::string& address);

/// Asks the coordinator named in `key` for a certificate. Runs on `io`; `done` comes once.
void enrol(boost::asio::io_context& io, const JoinKey& key, const std::string& node,
           const TransportOptions& options, std::function<void(Result<NodeIdentity>)> done);

}  // namespace artel::net
