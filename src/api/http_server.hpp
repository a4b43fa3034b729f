// SPDX-License-Identifier: Apache-2.0
// HttpServer: HTTP/1.1 on one io thread of its own, for many slow and streaming clients.
// Knows connections, limits and deadlines; knows nothing of JSON or models (HttpHandler does).
// Threads: handler methods, disconnect callbacks and post()ed functions run on the io thread and
// must not block; Responder may be used from any thread; create, start, stop from the owner's.
// A client that shuts down its sending side while it waits for an answer counts as gone.
// Every client gets an end: a Responder whose last copy goes away unused answers 500.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/http_message.hpp"
#include "base/result.hpp"

namespace artel::api {

/// Every limit of the server; tests shorten the times.
struct HttpLimits {
    std::size_t header_bytes_max = 16 * 1024;
    std::size_t body_bytes_max = 16 * 1024 * 1024;
    std::size_t body_bytes_total_max = 512 * 1024 * 1024;  // of all requests being read or answered
    std::size_t connections_max = 4096;      // the oldest that waits for a request makes room
    std::size_t stream_bytes_max = 1 << 20;  // unsent bytes of one response: above is too slow
    int send_buffer_bytes = 256 * 1024;      // the kernel's, so that a slow reader is noticed
    std::chrono::milliseconds header_timeout{10'000};  // from the first byte or the connection
    std::chrono::milliseconds body_timeout{30'000};
    std::chrono::milliseconds idle_timeout{60'000};   // kept alive between requests
    std::chrono::milliseconds write_timeout{30'000};  // without a byte of progress
    std::chrono::milliseconds linger_timeout{5'000};  // reading off a refused body before closing
    std::chrono::milliseconds sweep_interval{50};  // deadlines and disconnects are seen this late
};

class Exchange;  // one request being answered, shared by Responder and connection

/// The way to answer one request. Copies share the exchange. Any thread; never blocks.
class Responder {
  public:
    explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

    /// The whole answer at once. Only the first of respond() and start_stream() counts.
    void respond(HttpResponse response) const;
    /// Sends the head; the body follows by push() and ends with finish(). `head.body` is ignored.
    void start_stream(HttpResponse head) const;
    /// False when the client is gone or too slow (it is dropped then): stop producing.
    bool push(std::string bytes) const;
    void finish() const;
    /// `callback` runs once, on the io thread, if the client goes away before the answer is
    /// complete; if it is gone already, at once in the caller's thread. Set it at most once.
    void on_disconnect(std::function<void()> callback) const;

  private:
    std::shared_ptr<Exchange> exchange_;
};

class HttpHandler {
  public:
    virtual ~HttpHandler() = default;
    /// Called before the body is read: an answer here refuses the request (no key, no such path).
    virtual std::optional<HttpResponse> refuse_early(const HttpRequest& head) = 0;
    virtual void on_request(HttpRequest request, Responder responder) = 0;
    /// The body of an answer to what never became a request (400, 408, 413, 431, 500, 503).
    virtual HttpResponse error_response(int status, std::string_view message) = 0;
};

class HttpServer {
  public:
    struct Options {
        std::string listen = "127.0.0.1:8080";  // HOST:PORT or [V6]:PORT; port 0 takes a free one
        HttpLimits limits;
    };
    /// Binds and listens (so that a taken port is an error here). `handler` must outlive the
    /// server.
    static Result<std::unique_ptr<HttpServer>> create(Options options, HttpHandler& handler);
    ~HttpServer();  // stop() with no patience

    void start();
    std::uint16_t port() const;
    /// "127.0.0.1:8080" with the port that was taken.
    std::string address() const;
    bool is_loopback() const;
    /// Runs `work` on the io thread; dropped once the server has stopped. Any thread.
    void post(std::function<void()> work);
    /// Closes the listener and idle connections, lets running requests finish for up to
    /// `patience`, then cuts the rest and joins the io thread. Not from the io thread.
    void stop(std::chrono::milliseconds patience);

  private:
    class Implementation;
    explicit HttpServer(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace artel::api
