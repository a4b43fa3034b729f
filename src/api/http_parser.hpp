// SPDX-License-Identifier: Apache-2.0
// HttpParser: bytes of one connection -> HttpRequests, with limits on header and body.
// Incremental: feed() consumes what it can of the bytes given; the caller keeps the rest and
// offers it again with more. Never throws, never reads ahead of one request (so pipelined requests
// stay with the caller). The only file that sees Boost.Beast is http_parser.cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "api/http_message.hpp"

namespace artel::api {

struct HttpParserLimits {
    std::size_t header_bytes_max = 16 * 1024;
    std::size_t body_bytes_max = 16 * 1024 * 1024;
};

class HttpParser {
  public:
    enum class Progress {
        NeedMore,    // offer the rest again together with more bytes
        HeaderDone,  // reported once; call feed() again for the body
        Complete,    // take() the request
        Refused,     // see refusal(); the connection can't be used for another request
    };
    struct Refusal {
        int status = 400;  // 400, 413, 431, 501
        std::string message;
    };

    explicit HttpParser(HttpParserLimits limits);
    ~HttpParser();
    HttpParser(HttpParser&&) noexcept;
    HttpParser& operator=(HttpParser&&) noexcept;

    /// Removes from the front of `bytes` what was consumed.
    Progress feed(std::string_view& bytes);
    /// The request so far: complete headers after HeaderDone, all of it after Complete.
    const HttpRequest& request() const;
    /// The complete request; the parser starts afresh.
    HttpRequest take();
    const Refusal& refusal() const;
    bool expects_continue() const;
    std::size_t body_bytes() const { return request().body.size(); }

  private:
    class Beast;
    HttpParserLimits limits_;
    std::unique_ptr<Beast> beast_;
    Refusal refusal_;
};

}  // namespace artel::api
