// SPDX-License-Identifier: Apache-2.0
#include "net/connection.hpp"

#include <netinet/tcp.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace artel::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kUserTimeoutMs = 10'000;  // unacknowledged bytes end the connection after so long

Error to_error(std::string_view what, const error_code& code) {
    if (code == asio::error::eof || code == asio::ssl::error::stream_truncated)
        return unavailable("{}: the peer closed the connection", what);
    return unavailable("{}: {}", what, code.message());
}

void set_socket_options(Connection::Socket& socket) {
    error_code ignored;
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    const int timeout = kUserTimeoutMs;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

std::string address_of(const Connection::Socket& socket) {
    error_code failure;
    const auto endpoint = socket.remote_endpoint(failure);
    if (failure) return "unknown";
    const auto address = endpoint.address();
    return fmt::format("{}{}{}:{}", address.is_v6() ? "[" : "", address.to_string(),
                       address.is_v6() ? "]" : "", endpoint.port());
}

}  // namespace

std::shared_ptr<Connection> Connection::create(Socket socket, std::shared_ptr<TlsContext> context,
                                               Side side, ConnectionLimits limits) {
    return std::shared_ptr<Connection>(
        new Connection(std::move(socket), std::move(context), side, limits));
}

Connection::Connection(Socket socket, std::shared_ptr<TlsContext> context, Side side,
                       ConnectionLimits limits)
    : context_(std::move(context)),
      stream_(std::move(socket), context_->native()),
      read_timer_(stream_.get_executor()),
      write_timer_(stream_.get_executor()),
      side_(side),
      limits_(limits) {
    set_socket_options(stream_.next_layer());
    remote_address_ = address_of(stream_.next_layer());
}

/// Starts the timer; when it fires first, the connection closes with DeadlineExceeded.
void Connection::arm(asio::steady_timer& timer, Duration timeout, const char* what) {
    timer.expires_after(timeout);
    timer.async_wait([self = shared_from_this(), what, timeout](error_code cancelled) {
        if (!cancelled)
            self->finish(
                deadline_exceeded("{} took longer than {:.1f} s", what, artel::seconds(timeout)));
    });
}

void Connection::handshake(Done done) {
    arm(read_timer_, limits_.handshake_timeout, "the TLS handshake");
    const auto type =
        side_ == Side::Dialled ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
    stream_.async_handshake(type,
                            [self = shared_from_this(), done = std::move(done)](error_code code) {
                                self->read_timer_.cancel();
                                if (code) return done(to_error("TLS handshake", code));
                                done(ok());
                            });
}

void Connection::read_exactly(std::span<std::byte> bytes, Done done) {
    arm(read_timer_, limits_.handshake_timeout, "the peer's opening");
    asio::async_read(
        stream_, asio::buffer(bytes.data(), bytes.size()),
        [self = shared_from_this(), done = std::move(done)](error_code code, std::size_t) {
            self->read_timer_.cancel();
            done(code ? to_error("reading the opening", code) : ok());
        });
}

void Connection::write_all(std::vector<std::byte> bytes, Done done) {
    arm(write_timer_, limits_.handshake_timeout, "sending the opening");
    auto kept = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    asio::async_write(
        stream_, asio::buffer(*kept),
        [self = shared_from_this(), kept, done = std::move(done)](error_code code, std::size_t) {
            self->write_timer_.cancel();
            done(code ? to_error("sending the opening", code) : ok());
        });
}

void Connection::start_frames(FrameFormat format, std::function<void(SharedBytes)> on_frame,
                              Done on_closed) {
    format_ = format;
    on_frame_ = std::move(on_frame);
    on_closed_ = std::move(on_closed);
    if (is_closed_) return finish(unavailable("closed before the first frame"));
    read_header();
    if (!outgoing_.empty() && !is_writing_) write_next();
}

void Connection::read_header() {
    incoming_.resize(format_.header_bytes);
    asio::async_read(
        stream_, asio::buffer(incoming_),
        [self = shared_from_this()](error_code code, std::size_t) {
            if (code) return self->finish(to_error("reading", code));
            const auto bytes = self->format_.frame_bytes(self->incoming_);
            if (!bytes.ok()) return self->finish(bytes.status());
            if (*bytes < self->format_.header_bytes || *bytes > self->limits_.frame_bytes_max)
                return self->finish(invalid_argument("a frame of {} bytes; expected {} to {}",
                                                     *bytes, self->format_.header_bytes,
                                                     self->limits_.frame_bytes_max));
            self->read_rest(*bytes);
        });
}

void Connection::read_rest(std::uint64_t frame_bytes) {
    const std::size_t header = incoming_.size();
    incoming_.resize(static_cast<std::size_t>(frame_bytes));
    arm(read_timer_, limits_.frame_timeout, "receiving a frame");
    asio::async_read(stream_, asio::buffer(incoming_.data() + header, incoming_.size() - header),
                     [self = shared_from_this()](error_code code, std::size_t) {
                         self->read_timer_.cancel();
                         if (code) return self->finish(to_error("reading", code));
                         if (self->is_closed_) return;
                         SharedBytes frame(std::move(self->incoming_));
                         self->incoming_ = {};
                         self->on_frame_(std::move(frame));
                         if (!self->is_closed_) self->read_header();
                     });
}

Error Connection::send(SharedBytes frame) {
    if (!is_open_.load(std::memory_order_acquire))
        return unavailable("the connection to {} is closed", remote_address_);
    const std::uint64_t waiting = queued_bytes_.fetch_add(frame.size()) + frame.size();
    if (waiting > limits_.queued_bytes_max) {
        queued_bytes_.fetch_sub(frame.size());
        return resource_exhausted("{} bytes wait to be sent to {}; the limit is {}", waiting,
                                  remote_address_, limits_.queued_bytes_max);
    }
    asio::dispatch(stream_.get_executor(),
                   [self = shared_from_this(), frame = std::move(frame)]() mutable {
                       if (self->is_closed_) return;
                       self->outgoing_.push_back(std::move(frame));
                       if (!self->is_writing_ && self->on_frame_) self->write_next();
                   });
    return ok();
}

void Connection::write_next() {
    is_writing_ = true;
    arm(write_timer_, limits_.write_timeout, "sending a frame");
    const SharedBytes& frame = outgoing_.front();
    asio::async_write(stream_, asio::buffer(frame.data(), frame.size()),
                      [self = shared_from_this()](error_code code, std::size_t) {
                          self->write_timer_.cancel();
                          if (code) return self->finish(to_error("sending", code));
                          if (self->is_closed_) return;
                          self->queued_bytes_.fetch_sub(self->outgoing_.front().size());
                          self->outgoing_.pop_front();
                          self->is_writing_ = false;
                          if (!self->outgoing_.empty()) self->write_next();
                      });
}

void Connection::close(Error why) {
    is_open_.store(false, std::memory_order_release);
    asio::post(stream_.get_executor(),
               [self = shared_from_this(), why = std::move(why)] { self->finish(why); });
}

void Connection::finish(const Error& why) {
    is_open_.store(false, std::memory_order_release);
    if (!is_closed_) {
        is_closed_ = true;
        read_timer_.cancel();
        write_timer_.cancel();
        error_code ignored;
        // No TLS shutdown: it would wait for the peer, which may be gone.
        stream_.next_layer().shutdown(Socket::shutdown_both, ignored);
        stream_.next_layer().close(ignored);
    }
    on_frame_ = nullptr;
    if (Done done = std::exchange(on_closed_, nullptr)) done(why);
}

}  // namespace artel::net
