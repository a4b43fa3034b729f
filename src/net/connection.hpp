// SPDX-License-Identifier: Apache-2.0
// Connection: one TLS connection that carries whole frames in order. It owns the socket; all
// callbacks run on the connection's executor, send() and close() may be called from any thread.
// Limits: one frame at most `frame_bytes_max`, at most `queued_bytes_max` waiting to be sent, a
// frame that has begun must end within `frame_timeout`, a write must finish within `write_timeout`.
// It knows nothing of lanes, messages or cluster membership (tls_transport does).
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "net/tls_context.hpp"

namespace artel::net {

/// How long a frame is, told from its fixed-size header. Errors end the connection.
struct FrameFormat {
    std::size_t header_bytes;
    Result<std::uint64_t> (*frame_bytes)(std::span<const std::byte> header);  // header included
};

struct ConnectionLimits {
    std::uint64_t frame_bytes_max = (1U << 20) + 4096;
    std::uint64_t queued_bytes_max = 256U << 20;
    Duration handshake_timeout = std::chrono::seconds(5);
    Duration frame_timeout = std::chrono::seconds(30);
    Duration write_timeout = std::chrono::seconds(30);
};

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    using Socket = boost::asio::ip::tcp::socket;
    using Stream = boost::asio::ssl::stream<Socket>;
    using Done = std::function<void(Error)>;
    enum class Side { Dialled, Accepted };

    static std::shared_ptr<Connection> create(Socket socket, std::shared_ptr<TlsContext> context,
                                              Side side, ConnectionLimits limits);

    /// TLS handshake within the limit; afterwards native_tls() tells who is there.
    void handshake(Done done);
    SSL* native_tls() { return stream_.native_handle(); }
    /// Exactly `bytes.size()` bytes, before frames start; `bytes` must live until `done`. Deadline:
    /// handshake_timeout.
    void read_exactly(std::span<std::byte> bytes, Done done);
    void write_all(std::vector<std::byte> bytes, Done done);

    /// From now on frames are read and handed over until the connection closes; on_closed comes
    /// once.
    void start_frames(FrameFormat format, std::function<void(SharedBytes)> on_frame,
                      Done on_closed);
    /// Queues a frame; ResourceExhausted when too much waits, Unavailable once closed. Any thread.
    Error send(SharedBytes frame);
    void close(Error why);

    std::uint64_t queued_bytes() const { return queued_bytes_.load(std::memory_order_relaxed); }
    boost::asio::any_io_executor executor() { return stream_.get_executor(); }
    std::string remote_address() const { return remote_address_; }

  private:
    Connection(Socket socket, std::shared_ptr<TlsContext> context, Side side,
               ConnectionLimits limits);
    void arm(boost::asio::steady_timer& timer, Duration timeout, const char* what);
    void read_header();
    void read_rest(std::uint64_t frame_bytes);
    void write_next();
    void finish(const Error& why);

    std::shared_ptr<TlsContext> context_;
    Stream stream_;
    boost::asio::steady_timer read_timer_, write_timer_;
    const Side side_;
    const ConnectionLimits limits_;
    std::string remote_address_;

    FrameFormat format_{};
    std::function<void(SharedBytes)> on_frame_;
    Done on_closed_;
    std::vector<std::byte> incoming_;
    std::deque<SharedBytes> outgoing_;
    bool is_writing_ = false;
    bool is_closed_ = false;  // executor's thread only
    std::atomic<bool> is_open_{true};
    std::atomic<std::uint64_t> queued_bytes_{0};
};

}  // namespace artel::net
