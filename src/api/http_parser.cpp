// SPDX-License-Identifier: Apache-2.0
#include "api/http_parser.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cctype>

#include "base/check.hpp"

namespace artel::api {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

std::string to_lower(beast::string_view text) {
    std::string lower(text.data(), text.size());
    for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

HttpParser::Refusal to_refusal(const beast::error_code& error) {
    if (error == http::error::body_limit) return {413, "the request body is too large"};
    if (error == http::error::header_limit) return {431, "the request header is too large"};
    return {400, "malformed HTTP request: " + error.message()};
}

}  // namespace

/// Beast's parser calls back with the pieces; they are collected here.
class HttpParser::Beast : public http::basic_parser<true> {
  public:
    explicit Beast(const HttpParserLimits& limits) {
        header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
        body_limit(limits.body_bytes_max);
    }
    HttpRequest request;
    bool header_was_reported = false;
    bool expects_continue = false;
    bool has_unknown_coding = false;

  private:
    void on_request_impl(http::verb, beast::string_view method, beast::string_view target,
                         int version, beast::error_code&) override {
        request.method.assign(method.data(), method.size());
        const std::size_t question = target.find('?');
        const auto path = target.substr(0, question);
        request.path.assign(path.data(), path.size());
        if (question != beast::string_view::npos) {
            const auto query = target.substr(question + 1);
            request.query.assign(query.data(), query.size());
        }
        request.is_http_1_0 = version == 10;
    }
    void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
    void on_field_impl(http::field field, beast::string_view name, beast::string_view value,
                       beast::error_code&) override {
        if (field == http::field::expect) expects_continue = beast::iequals(value, "100-continue");
        if (field == http::field::transfer_encoding && !beast::iequals(value, "chunked"))
            has_unknown_coding = true;
        request.headers.push_back({to_lower(name), std::string(value.data(), value.size())});
    }
    void on_header_impl(beast::error_code&) override { request.keep_alive = keep_alive(); }
    void on_body_init_impl(const boost::optional<std::uint64_t>&, beast::error_code&) override {}
    std::size_t on_body_impl(beast::string_view body, beast::error_code&) override {
        request.body.append(body.data(), body.size());
        return body.size();
    }
    void on_chunk_header_impl(std::uint64_t, beast::string_view, beast::error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body,
                                   beast::error_code&) override {
        request.body.append(body.data(), body.size());
        return body.size();
    }
    void on_finish_impl(beast::error_code&) override {}
};

HttpParser::HttpParser(HttpParserLimits limits)
    : limits_(limits), beast_(std::make_unique<Beast>(limits)) {}
HttpParser::~HttpParser() = default;
HttpParser::HttpParser(HttpParser&&) noexcept = default;
HttpParser& HttpParser::operator=(HttpParser&&) noexcept = default;

HttpParser::Progress HttpParser::feed(std::string_view& bytes) {
    // Beast asserts on empty input in some states, and on any input once it is done.
    while (!beast_->is_done() && !bytes.empty()) {
        beast_->eager(beast_->is_header_done());
        beast::error_code error;
        const std::size_t consumed =
            beast_->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
        bytes.remove_prefix(consumed);
        if (error && error != http::error::need_more) {
            refusal_ = to_refusal(error);
            return Progress::Refused;
        }
        if (beast_->is_header_done() && !beast_->header_was_reported) {
            beast_->header_was_reported = true;
            if (beast_->has_unknown_coding) {
                refusal_ = {501, "only the transfer coding 'chunked' is supported"};
                return Progress::Refused;
            }
            return Progress::HeaderDone;
        }
        if (error == http::error::need_more || consumed == 0) break;
    }
    if (beast_->is_done()) return Progress::Complete;
    // Chunk headers and trailers are bounded here; Beast would look for their end for ever.
    if (bytes.size() > limits_.header_bytes_max) {
        refusal_ = {400, "malformed HTTP request: a chunk header or trailer is too long"};
        return Progress::Refused;
    }
    return Progress::NeedMore;
}

const HttpRequest& HttpParser::request() const {
    return beast_->request;
}

HttpRequest HttpParser::take() {
    ARTEL_CHECK(beast_->is_done(), "take() before the request is complete");
    HttpRequest request = std::move(beast_->request);
    beast_ = std::make_unique<Beast>(limits_);
    return request;
}

const HttpParser::Refusal& HttpParser::refusal() const {
    return refusal_;
}

bool HttpParser::expects_continue() const {
    return beast_->expects_continue;
}

}  // namespace artel::api
