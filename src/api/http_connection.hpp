// SPDX-License-Identifier: Apache-2.0
// HttpConnection: one client. Reads a request, has it answered, writes the answer, starts again.
// Private to the HTTP server; io thread only. Reads nothing while it answers, so a client that
// pipelines waits in its own kernel. Deadlines have no timers of their own: the server calls
// sweep() every few milliseconds.
// Idle -> ReadingHeader -> ReadingBody -> Answering -> Idle | Lingering -> Closed
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/byte_stream.hpp"
#include "api/http_exchange.hpp"
#include "api/http_parser.hpp"
#include "api/http_server.hpp"

namespace artel::api {

using HttpTime = std::chrono::steady_clock::time_point;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
  public:
    /// What a connection asks of its server.
    class Owner {
      public:
        virtual ~Owner() = default;
        virtual HttpHandler& handler() = 0;
        virtual const HttpLimits& limits() const = 0;
        virtual bool is_draining() const = 0;
        /// Counts body bytes held in memory (negative when they are let go); false above the limit.
        virtual bool count_body_bytes(std::ptrdiff_t bytes) = 0;
        /// From any thread: run `work` on the io thread, later.
        virtual void post(std::function<void()> work) = 0;
        virtual void on_closed(HttpConnection& connection) = 0;
    };

    HttpConnection(std::unique_ptr<ByteStream> stream, Owner& owner);

    void start();
    /// Answers `status` to whatever the client may ask, and closes.
    void refuse(int status, std::string_view message);
    void sweep(HttpTime now);
    /// No request after the running one.
    void drain();
    /// Closes at once; a running answer's disconnect callback runs.
    void close();

    /// Waiting for a request (or for the client to close): may be closed to make room.
    bool is_waiting() const;
    bool is_answering() const { return state_ == State::Answering; }
    HttpTime state_since() const { return state_since_; }
    /// The descriptor to watch for a peer that goes away, or -1 if that doesn't matter now.
    int watched_descriptor() const;

  private:
    enum class State { Idle, ReadingHeader, ReadingBody, Answering, Lingering, Closed };

    void enter(State state, std::chrono::milliseconds timeout);
    void read();
    void on_read(boost::system::error_code error, std::size_t bytes);
    void consume();
    bool on_progress(HttpParser::Progress progress);
    bool has_counted_body();
    void on_header();
    void answer();
    void pump();
    void queue_head(const HttpResponse& head, bool is_stream);
    void queue_body(std::string_view bytes);
    void write();
    void on_written(boost::system::error_code error, std::size_t bytes);
    void on_all_written();
    void end_answer();
    void linger();
    void release_body();

    std::unique_ptr<ByteStream> stream_;
    Owner& owner_;
    HttpParser parser_;
    State state_ = State::Idle;
    HttpTime state_since_{}, deadline_{}, last_progress_{};

    std::vector<char> read_buffer_;
    std::string pending_;         // read, not parsed yet
    std::size_t body_bytes_ = 0;  // counted with the owner
    bool is_reading_ = false;

    std::string request_id_;  // of the last request that came whole
    std::optional<HttpResponse> early_refusal_;
    std::shared_ptr<Exchange> exchange_;  // while Answering, unless the server answers itself
    std::string queued_;                  // to be written next
    std::string writing_;                 // in flight from write_offset_ on
    std::size_t write_offset_ = 0;
    std::size_t payload_bytes_ = 0;  // bytes of the exchange in queued_ or writing_
    bool is_writing_ = false;
    bool is_head_request_ = false;
    bool is_http_1_0_ = false;
    bool is_chunked_ = false;
    bool is_answer_complete_ = false;  // its last byte is queued
    bool keep_alive_ = true;
};

}  // namespace artel::api
