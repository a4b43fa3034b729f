// SPDX-License-Identifier: Apache-2.0
#include "net/tls_transport.hpp"

#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include "base/log.hpp"

namespace artel::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

std::uint32_t random_number() {
    std::uint32_t number = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number));
    return number;
}

}  // namespace

/// One peer's four lanes, being opened or up.
struct TlsTransport::Link {
    Link(Loop loop, std::string node_name, std::uint32_t link_number)
        : node(std::move(node_name)), number(link_number), deadline(loop) {}
    std::string node;
    std::uint32_t number;
    std::uint32_t process = 0;                           // the dialler's; accepted side only
    std::chrono::steady_clock::time_point last_heard{};  // while it is up
    std::string address;
    std::uint16_t version = 0;
    std::array<std::shared_ptr<Connection>, kLaneCount> lanes;
    asio::steady_timer deadline;           // of the assembly
    CheckName check;                       // dialled side only
    std::function<void(Error)> dial_done;  // dialled side, until up or failed
    bool is_over = false;
};

/// An accepted connection that is not a lane yet.
struct TlsTransport::Accepted {
    std::shared_ptr<Connection> connection;
    Peer peer;
    std::array<std::byte, kOpeningBytes> opening_bytes{};
    Opening opening;
    std::array<std::byte, 4> length_bytes{};
    std::vector<std::byte> body;
    std::shared_ptr<std::atomic<std::size_t>>
        unopened;  // counts this one down, on whatever thread it ends
    ~Accepted() { unopened->fetch_sub(1); }
};

Result<std::pair<std::string, std::string>> split_address(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon == std::string::npos ? 0 : colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
    const bool is_number =
        !port.empty() && port.size() <= 5 &&
        std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (host.empty() || !is_number || std::stoul(port) > 65535)
        return invalid_argument("'{}' is not an address; expected HOST:PORT", address);
    return std::pair{host, port};
}

Error check_can_be_dialled(const std::string& address) {
    ARTEL_ASSIGN(const auto parts, split_address(address));
    error_code is_name;
    const auto host = asio::ip::make_address(parts.first, is_name);
    if (is_name || !host.is_unspecified()) return ok();
    return invalid_argument(
        "'{}' stands for every address of this machine, which none can dial; "
        "expected the one that other machines reach",
        address);
}

std::shared_ptr<TlsTransport> TlsTransport::create(asio::io_context& io, Loop loop,
                                                   std::shared_ptr<TlsContext> context,
                                                   TransportOptions options,
                                                   TransportEvents events) {
    return std::shared_ptr<TlsTransport>(
        new TlsTransport(io, std::move(loop), std::move(context), options, std::move(events)));
}

TlsTransport::TlsTransport(asio::io_context& io, Loop loop, std::shared_ptr<TlsContext> context,
                           TransportOptions options, TransportEvents events)
    : io_(io),
      loop_(loop),
      context_(std::move(context)),
      options_(options),
      events_(std::move(events)),
      acceptor_(loop),
      accept_pause_(loop),
      process_(random_number() | 1U) {}

Result<std::uint16_t> TlsTransport::listen(const std::string& address) {
    ARTEL_ASSIGN(const auto parts, split_address(address));
    error_code failure;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(parts.first, parts.second, tcp::resolver::passive, failure);
    if (failure || found.empty())
        return invalid_argument("listening on {}: {}", address, failure.message());
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), failure);
    if (!failure) acceptor_.set_option(asio::socket_base::reuse_address(true), failure);
    if (!failure) acceptor_.bind(endpoint, failure);
    if (!failure) acceptor_.listen(4096, failure);
    if (failure) {
        error_code ignored;
        acceptor_.close(ignored);
        return unavailable("listening on {}: {}; is another program using the port?", address,
                           failure.message());
    }
    accept_next();
    return acceptor_.local_endpoint().port();
}

void TlsTransport::accept_next() {
    acceptor_.async_accept(asio::make_strand(io_),
                           asio::bind_executor(loop_, [self = shared_from_this()](
                                                          error_code code, tcp::socket socket) {
                               if (self->is_stopped_ || code == asio::error::operation_aborted)
                                   return;
                               if (!code) {
                                   self->on_accepted(std::move(socket));
                                   return self->accept_next();
                               }
                               // Out of descriptors, most likely: the ones that wait time out soon.
                               self->accept_pause_.expires_after(std::chrono::milliseconds(100));
                               self->accept_pause_.async_wait([self](error_code cancelled) {
                                   if (!cancelled) self->accept_next();
                               });
                           }));
}

void TlsTransport::on_accepted(Connection::Socket socket) {
    if (unopened_->load() >= options_.limits.unopened_connections_max) return;  // closes the socket
    auto accepted = std::make_shared<Accepted>();
    unopened_->fetch_add(1);
    accepted->unopened = unopened_;
    accepted->connection = Connection::create(
        std::move(socket), context_, Connection::Side::Accepted, options_.limits.connection);
    const auto self = shared_from_this();
    asio::post(accepted->connection->executor(), [self, accepted] {
        accepted->connection->handshake([self, accepted](const Error& error) {
            asio::post(self->loop_, [self, accepted, error] {
                if (!error.ok()) return accepted->connection->close(error);
                const auto peer = self->context_->check_peer(accepted->connection->native_tls());
                if (!peer.ok()) return accepted->connection->close(peer.status());
                accepted->peer = *peer;
                self->on_opening(accepted);
            });
        });
    });
}

void TlsTransport::on_opening(const std::shared_ptr<Accepted>& accepted) {
    const auto self = shared_from_this();
    asio::post(accepted->connection->executor(), [self, accepted] {
        accepted->connection->read_exactly(
            accepted->opening_bytes, [self, accepted](const Error& error) {
                asio::post(self->loop_, [self, accepted, error] {
                    if (!error.ok()) return accepted->connection->close(error);
                    const auto opening = Opening::decode(accepted->opening_bytes);
                    if (!opening.ok()) return self->refuse(accepted, opening.status());
                    accepted->opening = *opening;
                    const auto version = choose_version(*opening, self->options_.versions);
                    if (!version.ok()) return self->refuse(accepted, version.status());
                    if (opening->purpose == Purpose::Enrol) return self->enrol(accepted);
                    if (!accepted->peer.name)
                        return self->refuse(
                            accepted, unauthenticated(
                                          "your certificate is not of cluster {}; join with a key",
                                          self->context_->identity().cluster));
                    if (opening->lane >= kLaneCount)
                        return self->refuse(
                            accepted, invalid_argument("lane {} does not exist", opening->lane));
                    self->add_accepted_lane(accepted, *version);
                });
            });
    });
}

void TlsTransport::refuse(const std::shared_ptr<Accepted>& accepted, const Error& why) {
    log_warning("refused a connection", {{"from", accepted->connection->remote_address()},
                                         {"reason", std::string(why.message())}});
    const OpeningReply reply{
        .is_accepted = false, .version = options_.versions.max, .text = std::string(why.message())};
    asio::post(accepted->connection->executor(), [self = shared_from_this(), accepted, reply, why] {
        accepted->connection->write_all(reply.encode(), [self, accepted, why](const Error&) {
            asio::post(self->loop_, [accepted, why] { accepted->connection->close(why); });
        });
    });
}

void TlsTransport::enrol(const std::shared_ptr<Accepted>& accepted) {
    if (!events_.on_enrol)
        return refuse(accepted, permission_denied("this node does not enrol others"));
    const auto self = shared_from_this();
    const OpeningReply reply{.is_accepted = true, .version = options_.versions.max, .text = {}};
    asio::post(accepted->connection->executor(), [self, accepted, reply] {
        Connection& connection = *accepted->connection;
        connection.write_all(reply.encode(), [](const Error&) {});
        connection.read_exactly(accepted->length_bytes, [self, accepted](const Error& error) {
            std::uint32_t length = 0;
            std::memcpy(&length, accepted->length_bytes.data(), sizeof(length));
            if (!error.ok() || length > kEnrolBytesMax) {
                asio::post(self->loop_, [accepted] {
                    accepted->connection->close(invalid_argument("enrolment too long"));
                });
                return;
            }
            accepted->body.resize(length);
            accepted->connection->read_exactly(
                accepted->body, [self, accepted](const Error& failure) {
                    asio::post(self->loop_, [self, accepted, failure] {
                        if (!failure.ok()) return accepted->connection->close(failure);
                        self->answer_enrolment(accepted, accepted->body);
                    });
                });
        });
    });
}

void TlsTransport::answer_enrolment(const std::shared_ptr<Accepted>& accepted,
                                    std::span<const std::byte> body) {
    const auto request = EnrolRequest::decode(body);
    const EnrolReply reply = request.ok()
                                 ? events_.on_enrol(*request)
                                 : EnrolReply{std::string(request.status().message()), {}, {}};
    const auto fields = reply.encode();
    ByteWriter writer;
    writer.write<std::uint32_t>(static_cast<std::uint32_t>(fields.size()));
    writer.write_bytes(fields);
    asio::post(accepted->connection->executor(), [self = shared_from_this(), accepted,
                                                  bytes = writer.take()]() mutable {
        accepted->connection->write_all(std::move(bytes), [self, accepted](const Error&) {
            asio::post(self->loop_, [accepted] {
                accepted->connection->close(unavailable("enrolment is over"));
            });
        });
    });
}

void TlsTransport::add_accepted_lane(const std::shared_ptr<Accepted>& accepted,
                                     std::uint16_t version) {
    const std::string& node = accepted->peer.name->node;
    if (const Error taken = check_name_is_free(node, accepted->opening.process); !taken.ok())
        return refuse(accepted, taken);
    const auto key = std::pair{node, accepted->opening.link};
    auto& link = assembling_[key];
    if (!link) {
        link = std::make_shared<Link>(loop_, node, accepted->opening.link);
        link->version = version;
        link->process = accepted->opening.process;
        link->address = accepted->connection->remote_address();
        link->deadline.expires_after(options_.limits.link_assembly_timeout);
        link->deadline.async_wait([self = shared_from_this(), link = link](error_code cancelled) {
            if (!cancelled)
                self->fail_assembly(link, deadline_exceeded("not all four lanes of the link came"));
        });
    }
    if (link->lanes[accepted->opening.lane])
        return refuse(accepted, invalid_argument("lane {} of this link exists already",
                                                 accepted->opening.lane));
    const OpeningReply reply{.is_accepted = true, .version = version, .text = {}};
    const auto self = shared_from_this();
    asio::post(accepted->connection->executor(), [self, accepted, reply, link = link] {
        accepted->connection->write_all(reply.encode(), [self, accepted, link](const Error& error) {
            asio::post(self->loop_, [self, accepted, link, error] {
                if (!error.ok()) return self->fail_assembly(link, error);
                self->on_lane_open(link, accepted->opening.lane, accepted->connection);
            });
        });
    });
}

/// Two processes with one certificate would replace each other's links without end.
Error TlsTransport::check_name_is_free(const std::string& node, std::uint32_t process) const {
    const auto holder = links_.find(node);
    if (holder == links_.end()) return ok();
    const std::uint32_t held_by = holder->second->process;  // 0: a link that this side dialled
    if (held_by == 0 || process == 0 || held_by == process) return ok();
    if (std::chrono::steady_clock::now() - holder->second->last_heard >=
        options_.limits.name_held_for)
        return ok();
    return failed_precondition(
        "another process named '{}' is connected from {}; each needs a name of its own (--name)",
        node, holder->second->address);
}

void TlsTransport::dial(const std::string& address, CheckName check,
                        std::function<void(Error)> done) {
    const auto parts = split_address(address);
    if (!parts.ok())
        return asio::post(loop_, [done = std::move(done), error = parts.status()] { done(error); });
    auto link = std::make_shared<Link>(loop_, std::string(), random_number());
    link->address = address;
    link->check = std::move(check);
    link->dial_done = std::move(done);
    link->deadline.expires_after(options_.limits.connect_timeout +
                                 options_.limits.connection.handshake_timeout);
    link->deadline.async_wait([self = shared_from_this(), link](error_code cancelled) {
        if (!cancelled)
            self->fail_assembly(link,
                                deadline_exceeded("connecting to {} took too long", link->address));
    });
    auto resolver = std::make_shared<tcp::resolver>(loop_);
    resolver->async_resolve(
        parts->first, parts->second,
        [self = shared_from_this(), link, resolver](error_code code,
                                                    const tcp::resolver::results_type& found) {
            if (code || found.empty())
                return self->fail_assembly(
                    link, unavailable("resolving {}: {}", link->address, code.message()));
            for (std::size_t lane = 0; lane < kLaneCount; ++lane)
                self->dial_lane(link, lane, found.begin()->endpoint());
        });
}

void TlsTransport::dial_lane(const std::shared_ptr<Link>& link, std::size_t lane,
                             const tcp::endpoint& endpoint) {
    auto socket = std::make_shared<tcp::socket>(asio::make_strand(io_));
    socket->async_connect(
        endpoint, asio::bind_executor(loop_, [self = shared_from_this(), link, lane,
                                              socket](error_code code) {
            if (link->is_over) return;
            if (code)
                return self->fail_assembly(
                    link, unavailable("connecting to {}: {}", link->address, code.message()));
            self->open_lane(
                link, lane,
                Connection::create(std::move(*socket), self->context_, Connection::Side::Dialled,
                                   self->options_.limits.connection));
        }));
}

void TlsTransport::open_lane(const std::shared_ptr<Link>& link, std::size_t lane,
                             const std::shared_ptr<Connection>& connection) {
    const auto self = shared_from_this();
    const auto fail = [self, link, connection](const Error& error) {
        asio::post(self->loop_, [self, link, connection, error] {
            connection->close(error);
            self->fail_assembly(link, error);
        });
    };
    const Opening opening{.version_min = options_.versions.min,
                          .version_max = options_.versions.max,
                          .purpose = Purpose::Link,
                          .lane = static_cast<std::uint8_t>(lane),
                          .process = process_,
                          .link = link->number,
                          .schema_hash = options_.versions.schema_hash};
    asio::post(connection->executor(), [self, link, lane, connection, fail, opening] {
        connection->handshake([self, link, lane, connection, fail, opening](const Error& error) {
            if (!error.ok()) return fail(error);
            const auto peer = self->context_->check_peer(connection->native_tls());
            if (!peer.ok()) return fail(peer.status());
            if (!peer->name)
                return fail(unauthenticated("{} is a stranger to this cluster",
                                            connection->remote_address()));
            if (const Error wrong = link->check(peer->name->node); !wrong.ok()) return fail(wrong);
            const auto bytes = opening.encode();
            connection->write_all({bytes.begin(), bytes.end()}, [fail](const Error& failure) {
                if (!failure.ok()) fail(failure);
            });
            auto reply_bytes = std::make_shared<std::array<std::byte, kOpeningReplyBytes>>();
            connection->read_exactly(*reply_bytes, [self, link, lane, connection, fail,
                                                    node = peer->name->node,
                                                    reply_bytes](const Error& failure) {
                if (!failure.ok()) return fail(failure);
                std::size_t text_bytes = 0;
                const auto reply = OpeningReply::decode_fixed(*reply_bytes, text_bytes);
                if (!reply.ok()) return fail(reply.status());
                if (reply->is_accepted) {
                    asio::post(self->loop_,
                               [self, link, lane, connection, node, version = reply->version] {
                                   if (!link->node.empty() && link->node != node)
                                       return self->fail_assembly(
                                           link, unauthenticated("{} is two nodes, '{}' and '{}'",
                                                                 link->address, link->node, node));
                                   link->version = version;
                                   link->node = node;
                                   self->on_lane_open(link, lane, connection);
                               });
                    return;
                }
                auto text = std::make_shared<std::vector<std::byte>>(text_bytes);
                connection->read_exactly(*text, [fail, text, connection](const Error&) {
                    fail(failed_precondition("{} refused: {}", connection->remote_address(),
                                             as_text(*text)));
                });
            });
        });
    });
}

/// The lanes' callbacks hold the link, so it must let go of the lanes.
void TlsTransport::close_lanes(Link& link, const Error& why) {
    for (auto& lane : link.lanes)
        if (const auto connection = std::exchange(lane, nullptr)) connection->close(why);
}

void TlsTransport::on_lane_open(const std::shared_ptr<Link>& link, std::size_t lane,
                                std::shared_ptr<Connection> connection) {
    if (link->is_over || is_stopped_) return connection->close(cancelled("the link is gone"));
    link->lanes[lane] = std::move(connection);
    if (std::all_of(link->lanes.begin(), link->lanes.end(),
                    [](const auto& open) { return open != nullptr; }))
        bring_up(link);
}

void TlsTransport::fail_assembly(std::shared_ptr<Link> link, const Error& why) {
    if (link->is_over) return;
    link->is_over = true;
    link->deadline.cancel();
    assembling_.erase({link->node, link->number});
    close_lanes(*link, why);
    if (auto done = std::exchange(link->dial_done, nullptr)) done(why);
}

void TlsTransport::bring_up(const std::shared_ptr<Link>& link) {
    if (const Error taken = check_name_is_free(link->node, link->process); !taken.ok())
        return fail_assembly(link, taken);
    link->deadline.cancel();
    assembling_.erase({link->node, link->number});
    link->last_heard = std::chrono::steady_clock::now();
    // A second link of the same node means that it restarted, or that it gave up the first one.
    if (const auto old = links_.find(link->node); old != links_.end())
        take_down(old->second, unavailable("replaced by a newer link of the same node"));
    links_[link->node] = link;
    const auto self = shared_from_this();
    for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
        const auto connection = link->lanes[lane];
        asio::post(connection->executor(), [self, link, lane, connection] {
            connection->start_frames(
                self->options_.format,
                [self, link, lane](SharedBytes frame) {
                    asio::post(self->loop_, [self, link, lane, frame = std::move(frame)]() mutable {
                        if (link->is_over) return;
                        link->last_heard = std::chrono::steady_clock::now();
                        self->events_.on_frame(link->node, lane, std::move(frame));
                    });
                },
                [self, link](const Error& why) {
                    asio::post(self->loop_, [self, link, why] { self->take_down(link, why); });
                });
        });
    }
    if (auto done = std::exchange(link->dial_done, nullptr)) done(ok());
    events_.on_link_up(link->node, link->address, link->version);
}

// By value: the map entry that held the link goes away inside.
void TlsTransport::take_down(std::shared_ptr<Link> link, const Error& why) {
    if (link->is_over) return;
    link->is_over = true;
    if (const auto found = links_.find(link->node); found != links_.end() && found->second == link)
        links_.erase(found);
    close_lanes(*link, why);
    if (!is_stopped_) events_.on_link_down(link->node, why);
}

Error TlsTransport::send(const std::string& node, std::size_t lane, SharedBytes frame) {
    const auto found = links_.find(node);
    if (found == links_.end()) return unavailable("no link to node '{}'", node);
    return found->second->lanes[lane]->send(std::move(frame));
}

void TlsTransport::disconnect(const std::string& node, const Error& why) {
    if (const auto found = links_.find(node); found != links_.end()) take_down(found->second, why);
}

void TlsTransport::stop() {
    is_stopped_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    accept_pause_.cancel();
    const auto links = links_;
    for (const auto& [node, link] : links) take_down(link, cancelled("shutting down"));
    const auto assembling = assembling_;
    for (const auto& [key, link] : assembling) fail_assembly(link, cancelled("shutting down"));
}

namespace {

/// The dialling side of an enrolment: connect, handshake, pin, opening, request, reply.
class Enrolment : public std::enable_shared_from_this<Enrolment> {
  public:
    Enrolment(asio::io_context& io, JoinKey key, std::string node, TransportOptions options,
              std::function<void(Result<NodeIdentity>)> done)
        : strand_(asio::make_strand(io)),
          resolver_(strand_),
          socket_(strand_),
          deadline_(strand_),
          key_(std::move(key)),
          node_(std::move(node)),
          options_(options),
          done_(std::move(done)) {}

    void start() {
        const auto parts = split_address(key_.address);
        if (!parts.ok()) return finish(parts.status());
        deadline_.expires_after(options_.limits.connect_timeout);
        deadline_.async_wait([self = shared_from_this()](error_code cancelled) {
            if (cancelled) return;
            error_code ignored;
            self->socket_.close(ignored);
            self->finish(deadline_exceeded("connecting to {} took too long", self->key_.address));
        });
        resolver_.async_resolve(
            parts->first, parts->second,
            [self = shared_from_this()](error_code code, const tcp::resolver::results_type& found) {
                if (code || found.empty()) return self->fail("resolving", code);
                self->socket_.async_connect(found.begin()->endpoint(), [self](error_code failure) {
                    if (failure) return self->fail("connecting to", failure);
                    self->deadline_.cancel();
                    self->open();
                });
            });
    }

  private:
    void fail(const char* what, const error_code& code) {
        finish(unavailable("{} {}: {}", what, key_.address, code.message()));
    }

    void open() {
        const auto stranger = make_unenrolled_identity(node_);
        if (!stranger.ok()) return finish(stranger.status());
        auto context = TlsContext::create(*stranger);
        if (!context.ok()) return finish(context.status());
        connection_ = Connection::create(std::move(socket_), *context, Connection::Side::Dialled,
                                         options_.limits.connection);
        connection_->handshake([self = shared_from_this()](const Error& error) {
            if (!error.ok()) return self->finish(error);
            const auto peer = TlsContext::check_pinned_peer(self->connection_->native_tls(),
                                                            self->key_.authority);
            if (!peer.ok()) return self->finish(peer.status());
            self->authority_pem_ = peer->authority_pem;
            self->cluster_ = peer->name->cluster;
            self->send_request();
        });
    }

    void send_request() {
        auto request = make_certificate_request(node_);
        if (!request.ok()) return finish(request.status());
        key_pem_ = std::move(request->key_pem);
        const Opening opening{.version_min = options_.versions.min,
                              .version_max = options_.versions.max,
                              .purpose = Purpose::Enrol,
                              .lane = 0,
                              .process = 0,
                              .link = 0,
                              .schema_hash = options_.versions.schema_hash};
        const EnrolRequest enrol{
            .secret_id = std::string(key_.secret_id.begin(), key_.secret_id.end()),
            .secret = std::string(key_.secret.begin(), key_.secret.end()),
            .node = node_,
            .request_pem = std::move(request->request_pem)};
        const auto fields = enrol.encode();
        ByteWriter writer;
        writer.write_bytes(opening.encode());
        writer.write<std::uint32_t>(static_cast<std::uint32_t>(fields.size()));
        writer.write_bytes(fields);
        connection_->write_all(writer.take(), [self = shared_from_this()](const Error& error) {
            if (!error.ok()) return self->finish(error);
            self->read_opening_reply();
        });
    }

    void read_opening_reply() {
        connection_->read_exactly(fixed_, [self = shared_from_this()](const Error& error) {
            if (!error.ok()) return self->finish(error);
            std::size_t text_bytes = 0;
            const auto reply = OpeningReply::decode_fixed(self->fixed_, text_bytes);
            if (!reply.ok()) return self->finish(reply.status());
            if (reply->is_accepted) return self->read_length();
            self->body_.resize(text_bytes);
            self->connection_->read_exactly(self->body_, [self](const Error&) {
                self->finish(
                    permission_denied("the coordinator refused: {}", as_text(self->body_)));
            });
        });
    }

    void read_length() {
        connection_->read_exactly(length_, [self = shared_from_this()](const Error& error) {
            if (!error.ok()) return self->finish(error);
            std::uint32_t length = 0;
            std::memcpy(&length, self->length_.data(), sizeof(length));
            if (length > kEnrolBytesMax)
                return self->finish(invalid_argument("enrolment reply of {} bytes", length));
            self->body_.resize(length);
            self->connection_->read_exactly(self->body_, [self](const Error& failure) {
                if (!failure.ok()) return self->finish(failure);
                self->finish(self->identity_from_reply());
            });
        });
    }

    Result<NodeIdentity> identity_from_reply() {
        ARTEL_ASSIGN(EnrolReply reply, EnrolReply::decode(body_));
        if (!reply.error.empty())
            return permission_denied("the coordinator refused: {}", reply.error);
        if (reply.authority_pem != authority_pem_)
            return unauthenticated("the coordinator sent another authority");
        return NodeIdentity{.cluster = cluster_,
                            .node = node_,
                            .key_pem = key_pem_,
                            .certificate_pem = std::move(reply.certificate_pem),
                            .authority_pem = authority_pem_};
    }

    void finish(Result<NodeIdentity> result) {
        deadline_.cancel();
        if (connection_) connection_->close(ok());
        if (auto done = std::exchange(done_, nullptr)) done(std::move(result));
    }

    asio::strand<asio::io_context::executor_type> strand_;
    tcp::resolver resolver_;
    tcp::socket socket_;
    asio::steady_timer deadline_;
    JoinKey key_;
    std::string node_;
    TransportOptions options_;
    std::function<void(Result<NodeIdentity>)> done_;
    std::shared_ptr<Connection> connection_;
    std::string authority_pem_, cluster_, key_pem_;
    std::array<std::byte, kOpeningReplyBytes> fixed_{};
    std::array<std::byte, 4> length_{};
    std::vector<std::byte> body_;
};

}  // namespace

void enrol(asio::io_context& io, const JoinKey& key, const std::string& node,
           const TransportOptions& options, std::function<void(Result<NodeIdentity>)> done) {
    std::make_shared<Enrolment>(io, key, node, options, std::move(done))->start();
}

}  // namespace artel::net
