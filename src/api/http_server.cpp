// SPDX-License-Identifier: Apache-2.0
#include "api/http_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <condition_variable>
#include <thread>
#include <unordered_set>
#include <vector>

#include "api/http_connection.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"

namespace artel::api {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr int kListenBacklog = 4096;
constexpr auto kAcceptBackOff = std::chrono::milliseconds(50);
constexpr std::size_t kRefusedConnectionsMax = 256;  // above connections_max, being told so

class TcpStream : public ByteStream {
  public:
    explicit TcpStream(Tcp::socket socket) : socket_(std::move(socket)) {}
    void async_read_some(std::span<char> target, Completion done) override {
        socket_.async_read_some(asio::buffer(target.data(), target.size()), std::move(done));
    }
    void async_write_some(std::string_view source, Completion done) override {
        socket_.async_write_some(asio::buffer(source.data(), source.size()), std::move(done));
    }
    void shutdown_write() override {
        error_code ignored;
        socket_.shutdown(Tcp::socket::shutdown_send, ignored);
    }
    void close() override {
        error_code ignored;
        socket_.close(ignored);
    }
    int descriptor() const override { return descriptor_; }

  private:
    Tcp::socket socket_;
    int descriptor_ = socket_.native_handle();
};

/// "127.0.0.1:8080", "[::1]:8080", "localhost:0" -> where to bind.
Result<Tcp::endpoint> resolve_listen_address(asio::io_context& io, std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0)
        return invalid_argument("listen address '{}': expected HOST:PORT", text);
    std::string_view host = text.substr(0, colon), port_text = text.substr(colon + 1);
    std::uint16_t port = 0;
    const auto parsed =
        std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
    if (parsed.ec != std::errc() || parsed.ptr != port_text.data() + port_text.size())
        return invalid_argument("listen address '{}': port must be 0 to 65535", text);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    error_code error;
    Tcp::resolver resolver(io);
    const auto found = resolver.resolve(host, port_text, Tcp::resolver::passive, error);
    if (error || found.empty())
        return invalid_argument("listen address '{}': {}", text, error.message());
    return found.begin()->endpoint();
}

std::string address_text(const Tcp::endpoint& endpoint) {
    const std::string host = endpoint.address().to_string();
    return endpoint.address().is_v6() ? fmt::format("[{}]:{}", host, endpoint.port())
                                      : fmt::format("{}:{}", host, endpoint.port());
}

}  // namespace

class HttpServer::Implementation : public HttpConnection::Owner {
  public:
    Implementation(HttpLimits limits, HttpHandler& handler) : limits_(limits), handler_(handler) {}

    Error listen(const std::string& address);
    void start();
    void stop(std::chrono::milliseconds patience);
    const Tcp::endpoint& endpoint() const { return endpoint_; }

    HttpHandler& handler() override { return handler_; }
    const HttpLimits& limits() const override { return limits_; }
    bool is_draining() const override { return is_draining_; }
    bool count_body_bytes(std::ptrdiff_t bytes) override;
    void post(std::function<void()> work) override { asio::post(io_, std::move(work)); }
    void on_closed(HttpConnection& connection) override;

  private:
    void accept();
    void on_accept(error_code error, Tcp::socket socket);
    void take_in(Tcp::socket socket);
    bool make_room();
    void arm_sweep();
    void sweep();
    void watch_peers();
    void begin_drain();
    void cut_all();
    std::vector<std::shared_ptr<HttpConnection>> snapshot() const;

    const HttpLimits limits_;
    HttpHandler& handler_;
    asio::io_context io_{1};
    Tcp::acceptor acceptor_{io_};
    asio::steady_timer sweep_timer_{io_};
    asio::steady_timer accept_timer_{io_};
    Tcp::endpoint endpoint_;
    std::thread thread_;

    // On the io thread.
    std::unordered_set<std::shared_ptr<HttpConnection>> connections_;
    std::size_t body_bytes_ = 0;
    bool is_draining_ = false;
    bool is_cut_ = false;

    Mutex mutex_;
    std::condition_variable_any drained_;
    bool has_drained_ ARTEL_GUARDED_BY(mutex_) = false;
};

Error HttpServer::Implementation::listen(const std::string& address) {
    ARTEL_ASSIGN(endpoint_, resolve_listen_address(io_, address));
    error_code error;
    acceptor_.open(endpoint_.protocol(), error);
    if (!error) acceptor_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint_, error);
    if (!error) acceptor_.listen(kListenBacklog, error);
    if (!error) endpoint_ = acceptor_.local_endpoint(error);
    if (error) return unavailable("listening on {}: {}", address, error.message());
    return ok();
}

void HttpServer::Implementation::start() {
    accept();
    arm_sweep();
    thread_ = std::thread([this] { io_.run(); });
}

void HttpServer::Implementation::accept() {
    acceptor_.async_accept(
        [this](error_code error, Tcp::socket socket) { on_accept(error, std::move(socket)); });
}

void HttpServer::Implementation::on_accept(error_code error, Tcp::socket socket) {
    if (is_draining_) return;
    if (!error) {
        take_in(std::move(socket));
        return accept();
    }
    if (error == asio::error::operation_aborted) return;
    const bool is_short_of_resources =
        error == asio::error::no_descriptors || error == asio::error::no_memory ||
        error == asio::error::no_buffer_space || error.value() == ENFILE;
    if (!is_short_of_resources) return accept();  // the client was gone before we looked
    make_room();
    accept_timer_.expires_after(kAcceptBackOff);
    accept_timer_.async_wait([this](error_code timer_error) {
        if (!timer_error && !is_draining_) accept();
    });
}

void HttpServer::Implementation::take_in(Tcp::socket socket) {
    error_code ignored;  // each option is a courtesy; without it the connection works too
    socket.non_blocking(true, ignored);
    socket.set_option(Tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    if (limits_.send_buffer_bytes > 0)
        socket.set_option(asio::socket_base::send_buffer_size(limits_.send_buffer_bytes), ignored);
    const bool is_full = connections_.size() >= limits_.connections_max && !make_room();
    if (is_full && connections_.size() >= limits_.connections_max + kRefusedConnectionsMax) return;
    const auto connection =
        std::make_shared<HttpConnection>(std::make_unique<TcpStream>(std::move(socket)), *this);
    connections_.insert(connection);
    if (is_full)
        connection->refuse(503, "too many connections; try again");
    else
        connection->start();
}

/// Closes the connection that has waited longest without asking for anything, if there is one.
/// So a flood of silent connections costs each other their place, not the clients that speak.
bool HttpServer::Implementation::make_room() {
    std::shared_ptr<HttpConnection> oldest;
    for (const auto& connection : connections_)
        if (connection->is_waiting() &&
            (!oldest || connection->state_since() < oldest->state_since()))
            oldest = connection;
    if (!oldest) return false;
    oldest->close();
    return true;
}

bool HttpServer::Implementation::count_body_bytes(std::ptrdiff_t bytes) {
    body_bytes_ += static_cast<std::size_t>(bytes);  // never below 0: each gives back what it took
    return body_bytes_ <= limits_.body_bytes_total_max;
}

void HttpServer::Implementation::on_closed(HttpConnection& connection) {
    connections_.erase(connection.shared_from_this());
}

std::vector<std::shared_ptr<HttpConnection>> HttpServer::Implementation::snapshot() const {
    return {connections_.begin(), connections_.end()};
}

void HttpServer::Implementation::arm_sweep() {
    sweep_timer_.expires_after(limits_.sweep_interval);
    sweep_timer_.async_wait([this](error_code error) {
        if (!error) sweep();
    });
}

void HttpServer::Implementation::sweep() {
    if (is_cut_) return;
    watch_peers();
    const HttpTime time = std::chrono::steady_clock::now();
    for (const auto& connection : snapshot()) connection->sweep(time);
    const bool is_busy = std::any_of(connections_.begin(), connections_.end(),
                                     [](const auto& c) { return !c->is_waiting(); });
    if (is_draining_ && !is_busy) {
        MutexLock lock(mutex_);
        has_drained_ = true;
        drained_.notify_all();
    }
    arm_sweep();
}

/// A peer that closed is seen by POLLRDHUP without reading a byte, also while nothing is sent.
/// (Asio's async_wait for reading wakes without cause, and a read would eat a pipelined request.)
void HttpServer::Implementation::watch_peers() {
    std::vector<pollfd> polled;
    std::vector<std::shared_ptr<HttpConnection>> watched;
    for (const auto& connection : connections_) {
        const int descriptor = connection->watched_descriptor();
        if (descriptor < 0) continue;
        polled.push_back({.fd = descriptor, .events = POLLRDHUP, .revents = 0});
        watched.push_back(connection);
    }
    if (polled.empty() || ::poll(polled.data(), polled.size(), 0) <= 0) return;
    for (std::size_t i = 0; i < polled.size(); ++i)
        if ((polled[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) watched[i]->close();
}

void HttpServer::Implementation::begin_drain() {
    is_draining_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    accept_timer_.cancel();
    for (const auto& connection : snapshot()) connection->drain();
}

void HttpServer::Implementation::cut_all() {
    is_cut_ = true;
    sweep_timer_.cancel();
    for (const auto& connection : snapshot()) connection->close();
}

void HttpServer::Implementation::stop(std::chrono::milliseconds patience) {
    if (!thread_.joinable()) return;
    post([this] { begin_drain(); });
    {
        MutexLock lock(mutex_);
        const auto deadline = std::chrono::steady_clock::now() + patience;
        while (!has_drained_ &&
               drained_.wait_until(mutex_, deadline) == std::cv_status::no_timeout) {
        }
    }
    post([this] { cut_all(); });
    thread_.join();  // run() returns when the last operation has completed
}

HttpServer::HttpServer(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

HttpServer::~HttpServer() {
    implementation_->stop(std::chrono::milliseconds(0));
}

Result<std::unique_ptr<HttpServer>> HttpServer::create(Options options, HttpHandler& handler) {
    auto implementation = std::make_unique<Implementation>(options.limits, handler);
    ARTEL_TRY(implementation->listen(options.listen));
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(implementation)));
}

void HttpServer::start() {
    implementation_->start();
}
std::uint16_t HttpServer::port() const {
    return implementation_->endpoint().port();
}
std::string HttpServer::address() const {
    return address_text(implementation_->endpoint());
}
bool HttpServer::is_loopback() const {
    return implementation_->endpoint().address().is_loopback();
}
void HttpServer::post(std::function<void()> work) {
    implementation_->post(std::move(work));
}
void HttpServer::stop(std::chrono::milliseconds patience) {
    implementation_->stop(patience);
}

}  // namespace artel::api
