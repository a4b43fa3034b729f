// SPDX-License-Identifier: Apache-2.0
// TestClient: a blocking raw TCP client for the tests of the HTTP server, which must be able to
// send what no decent client sends. Every wait ends after thirty seconds,
// which is long so that a busy machine does not fail the tests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace artel::api {

struct TestResponse {
    int status = 0;  // 0: the connection ended before a whole response
    std::string head;
    std::string body;  // unchunked
    bool is_cut = false;

    bool has_header(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class TestClient {
  public:
    explicit TestClient(std::uint16_t port, int receive_buffer = 0) {
        socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
        const timeval limit{.tv_sec = 30, .tv_usec = 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (receive_buffer > 0)
            ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        is_connected_ =
            ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    ~TestClient() { close(); }
    TestClient(TestClient&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)), is_connected_(other.is_connected_) {}
    TestClient& operator=(TestClient&&) = delete;

    bool is_connected() const { return is_connected_; }
    void close() {
        if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    }
    void shutdown_write() { ::shutdown(socket_, SHUT_WR); }
    /// Closing with SO_LINGER 0 resets the connection.
    void reset() {
        const linger now{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close();
    }
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    /// False at the end of the connection or after thirty seconds.
    bool receive_more() {
        char buffer[16384];
        const ssize_t count = ::recv(socket_, buffer, sizeof(buffer), 0);
        if (count <= 0) return false;
        received_.append(buffer, static_cast<std::size_t>(count));
        return true;
    }
    bool wait_for(std::string_view text) {
        while (received_.find(text) == std::string::npos)
            if (!receive_more()) return false;
        return true;
    }
    /// Whether the server closes without sending anything more.
    bool is_closed_by_server() { return received_.empty() && !receive_more(); }
    const std::string& received() const { return received_; }

    TestResponse read_response(bool has_body = true) {
        TestResponse response;
        while (received_.find("\r\n\r\n") == std::string::npos)
            if (!receive_more()) return response;
        const std::size_t head_end = received_.find("\r\n\r\n") + 4;
        response.head = received_.substr(0, head_end);
        received_.erase(0, head_end);
        response.status = std::atoi(response.head.c_str() + 9);
        if (response.status == 100) return read_response(has_body);
        if (!has_body || response.status == 204) return response;
        if (response.has_header("Transfer-Encoding: chunked")) {
            response.is_cut = !read_chunks(response.body);
        } else if (const auto at = response.head.find("Content-Length: ");
                   at != std::string::npos) {
            const auto length = std::strtoul(response.head.c_str() + at + 16, nullptr, 10);
            while (received_.size() < length)
                if (!receive_more()) break;
            response.is_cut = received_.size() < length;
            response.body = received_.substr(0, length);
            received_.erase(0, length);
        } else {
            while (receive_more()) {
            }
            response.body = std::exchange(received_, {});
        }
        return response;
    }
    TestResponse exchange(std::string_view request) {
        send(request);
        return read_response();
    }
    static std::string post(std::string_view path, std::string_view body,
                            std::string_view headers = "") {
        std::string text = "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n";
        text += headers;
        text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n";
        return text.append(body);
    }
    static std::string get(std::string_view path, std::string_view headers = "") {
        return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) +
               "\r\n";
    }

  private:
    /// Whether the chunks ended properly.
    bool read_chunks(std::string& body) {
        for (;;) {
            while (received_.find("\r\n") == std::string::npos)
                if (!receive_more()) return false;
            const auto size = std::strtoul(received_.c_str(), nullptr, 16);
            const std::size_t start = received_.find("\r\n") + 2;
            while (received_.size() < start + size + 2)
                if (!receive_more()) return false;
            body += received_.substr(start, size);
            received_.erase(0, start + size + 2);
            if (size == 0) return true;
        }
    }

    int socket_ = -1;
    bool is_connected_ = false;
    std::string received_;
};

/// Room for many sockets at both ends in one process. Returns how many connections are safe.
inline std::size_t raise_descriptor_limit(std::size_t connections) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * connections + 200);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return std::min<std::size_t>(connections, (limit.rlim_cur - 200) / 2);
}

}  // namespace artel::api
