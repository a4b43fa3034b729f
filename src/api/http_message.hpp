// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 requests and responses as plain values. No sockets, no parsing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace artel::api {

struct HttpHeader {
    std::string name;  // lower case in requests
    std::string value;
};

struct HttpRequest {
    std::string method;  // as sent: "GET"
    std::string path;    // without the query
    std::string query;   // after '?', not decoded
    std::vector<HttpHeader> headers;
    std::string body;
    std::string id;  // of this request, for the log
    bool is_http_1_0 = false;
    bool keep_alive = true;

    /// The first header called `name` (lower case).
    std::optional<std::string_view> header(std::string_view name) const {
        for (const HttpHeader& h : headers)
            if (h.name == name) return h.value;
        return std::nullopt;
    }
};

/// Content-Length, Connection and Transfer-Encoding are the server's business and not listed.
struct HttpResponse {
    int status = 200;
    std::string content_type = "application/json";
    std::vector<HttpHeader> headers;
    std::string body;
};

}  // namespace artel::api
