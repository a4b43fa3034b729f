// SPDX-License-Identifier: Apache-2.0
#include "api/http_connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/random_name.hpp"

namespace artel::api {
namespace {

constexpr std::size_t kHeaderReadBytes = 4 * 1024;
constexpr std::size_t kBodyReadBytes = 64 * 1024;

HttpTime now() {
    return std::chrono::steady_clock::now();
}

std::string_view reason_phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 204:
            return "No Content";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 413:
            return "Content Too Large";
        case 415:
            return "Unsupported Media Type";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        default:
            return "Unknown";
    }
}

/// Header values are ours, but a CR or LF in one must not start a new header.
std::string one_line(std::string value) {
    std::replace_if(
        value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; },
        ' ');
    return value;
}

}  // namespace

HttpConnection::HttpConnection(std::unique_ptr<ByteStream> stream, Owner& owner)
    : stream_(std::move(stream)),
      owner_(owner),
      parser_({.header_bytes_max = owner.limits().header_bytes_max,
               .body_bytes_max = owner.limits().body_bytes_max}),
      read_buffer_(kHeaderReadBytes) {}

void HttpConnection::start() {
    enter(State::Idle, owner_.limits().header_timeout);
    read();
}

void HttpConnection::enter(State state, std::chrono::milliseconds timeout) {
    state_ = state;
    state_since_ = now();
    deadline_ = state_since_ + timeout;
}

bool HttpConnection::is_waiting() const {
    return state_ == State::Idle || state_ == State::ReadingHeader || state_ == State::Lingering;
}

int HttpConnection::watched_descriptor() const {
    // Once the whole answer is on its way, a client may close its side: the write will tell.
    return state_ == State::Answering && !is_answer_complete_ ? stream_->descriptor() : -1;
}

void HttpConnection::sweep(HttpTime time) {
    switch (state_) {
        case State::Idle:
        case State::Lingering:
            if (time > deadline_) close();
            return;
        case State::ReadingHeader:
            if (time > deadline_) refuse(408, "the request header did not arrive in time");
            return;
        case State::ReadingBody:
            if (time > deadline_) refuse(408, "the request body did not arrive in time");
            return;
        case State::Answering:
            if (is_writing_ && time > last_progress_ + owner_.limits().write_timeout) close();
            return;
        case State::Closed:
            return;
    }
}

void HttpConnection::drain() {
    keep_alive_ = false;
    if (state_ == State::Idle || state_ == State::Lingering) close();
}

void HttpConnection::close() {
    if (state_ == State::Closed) return;
    const auto keep = shared_from_this();
    state_ = State::Closed;
    stream_->close();
    release_body();
    if (const auto exchange = std::exchange(exchange_, nullptr))
        if (const auto callback = exchange->detach()) callback();
    owner_.on_closed(*this);
}

void HttpConnection::release_body() {
    owner_.count_body_bytes(-static_cast<std::ptrdiff_t>(std::exchange(body_bytes_, 0)));
}

void HttpConnection::read() {
    if (is_reading_) return;
    is_reading_ = true;
    read_buffer_.resize(state_ == State::ReadingBody ? kBodyReadBytes : kHeaderReadBytes);
    stream_->async_read_some(read_buffer_, [self = shared_from_this()](auto error, auto bytes) {
        self->on_read(error, bytes);
    });
}

void HttpConnection::on_read(boost::system::error_code error, std::size_t bytes) {
    is_reading_ = false;
    if (state_ == State::Closed) return;
    if (error) return state_ == State::Answering ? void() : close();
    if (state_ == State::Lingering) return read();
    pending_.append(read_buffer_.data(), bytes);
    if (state_ != State::Answering) consume();
}

void HttpConnection::consume() {
    for (;;) {
        if (state_ == State::Idle)  // RFC 9112 2.2: empty lines before a request are ignored
            pending_.erase(0, std::min(pending_.find_first_not_of("\r\n"), pending_.size()));
        if (state_ == State::Idle && !pending_.empty())
            enter(State::ReadingHeader, owner_.limits().header_timeout);
        std::string_view rest = pending_;
        const auto progress = parser_.feed(rest);
        pending_.erase(0, pending_.size() - rest.size());
        if (!on_progress(progress)) return;
    }
}

/// Whether consume() should go on at once.
bool HttpConnection::on_progress(HttpParser::Progress progress) {
    switch (progress) {
        case HttpParser::Progress::HeaderDone:
            on_header();
            return state_ == State::ReadingBody;
        case HttpParser::Progress::Refused:
            refuse(parser_.refusal().status, parser_.refusal().message);
            return false;
        case HttpParser::Progress::Complete:
            if (has_counted_body()) answer();
            return false;
        case HttpParser::Progress::NeedMore:
            break;
    }
    if (early_refusal_) {  // and its body is not here: answer without it
        const HttpResponse response = *std::exchange(early_refusal_, std::nullopt);
        keep_alive_ = false;
        enter(State::Answering, {});
        queue_head(response, /*is_stream=*/false);
        write();
        return false;
    }
    if (has_counted_body()) read();
    return false;
}

/// Tells the owner by how much the body has grown; refuses the request if all are too much.
bool HttpConnection::has_counted_body() {
    const auto grown = static_cast<std::ptrdiff_t>(parser_.body_bytes() - body_bytes_);
    body_bytes_ = parser_.body_bytes();
    if (owner_.count_body_bytes(grown)) return true;
    refuse(503, "too many request bodies are being held; try again");
    return false;
}

void HttpConnection::on_header() {
    const HttpRequest& head = parser_.request();
    is_head_request_ = head.method == "HEAD";
    is_http_1_0_ = head.is_http_1_0;
    keep_alive_ = head.keep_alive && !owner_.is_draining();
    early_refusal_ = owner_.handler().refuse_early(head);
    enter(State::ReadingBody, owner_.limits().body_timeout);
    const bool wants_continue = parser_.expects_continue() && !is_http_1_0_ && pending_.empty();
    if (!wants_continue || early_refusal_) return;
    queued_ += "HTTP/1.1 100 Continue\r\n\r\n";
    write();
}

void HttpConnection::answer() {
    enter(State::Answering, {});
    is_answer_complete_ = false;
    HttpRequest request = parser_.take();
    request.id = request_id_ = random_name("req_");
    if (early_refusal_) {
        queue_head(*std::exchange(early_refusal_, std::nullopt), /*is_stream=*/false);
        return write();
    }
    // The wake-up may come from any thread at any time until the exchange is detached.
    exchange_ = std::make_shared<Exchange>(owner_.limits().stream_bytes_max,
                                           [&owner = owner_, weak = weak_from_this()] {
                                               owner.post([weak] {
                                                   if (const auto self = weak.lock()) self->pump();
                                               });
                                           });
    owner_.handler().on_request(std::move(request), Exchange::responder_of(exchange_));
}

void HttpConnection::refuse(int status, std::string_view message) {
    if (state_ == State::Closed || state_ == State::Answering) return;
    enter(State::Answering, {});
    keep_alive_ = false;
    queue_head(owner_.handler().error_response(status, message), /*is_stream=*/false);
    write();
}

/// Moves what the Responder has given so far into the socket.
void HttpConnection::pump() {
    if (state_ != State::Answering || !exchange_) return;
    if (exchange_->is_too_slow()) return close();
    if (is_writing_) return;  // on_all_written() comes back
    Exchange::Output output = exchange_->take();
    if (output.head) {
        release_body();
        queue_head(*output.head, output.is_stream);
    }
    if (output.is_abandoned) keep_alive_ = false;
    if (output.is_abandoned && !output.is_stream)
        queue_head(owner_.handler().error_response(500, "the request was dropped"), false);
    if (output.is_stream) {
        payload_bytes_ = output.bytes.size();
        queue_body(output.bytes);
        // An abandoned stream gets no last chunk, so that the client sees that it was cut short.
        if (output.is_finished && is_chunked_) queued_ += "0\r\n\r\n";
        is_answer_complete_ = output.is_finished || output.is_abandoned;
    }
    if (!queued_.empty() || is_answer_complete_) write();
}

void HttpConnection::queue_head(const HttpResponse& head, bool is_stream) {
    if (owner_.is_draining()) keep_alive_ = false;
    is_chunked_ = is_stream && !is_http_1_0_;
    if (is_stream && is_http_1_0_) keep_alive_ = false;
    queued_ += fmt::format("HTTP/1.1 {} {}\r\n", head.status, reason_phrase(head.status));
    if (!head.content_type.empty()) queued_ += "Content-Type: " + head.content_type + "\r\n";
    for (const HttpHeader& header : head.headers)
        queued_ += header.name + ": " + one_line(header.value) + "\r\n";
    if (!request_id_.empty()) queued_ += "X-Request-Id: " + request_id_ + "\r\n";
    if (is_chunked_)
        queued_ += "Transfer-Encoding: chunked\r\n";
    else if (!is_stream && head.status != 204)
        queued_ += fmt::format("Content-Length: {}\r\n", head.body.size());
    if (!keep_alive_)
        queued_ += "Connection: close\r\n";
    else if (is_http_1_0_)
        queued_ += "Connection: keep-alive\r\n";
    queued_ += "\r\n";
    if (is_stream) return;
    if (!is_head_request_ && head.status != 204) queued_ += head.body;
    is_answer_complete_ = true;
}

void HttpConnection::queue_body(std::string_view bytes) {
    if (bytes.empty()) return;  // an empty chunk would end the body
    if (is_chunked_) queued_ += fmt::format("{:x}\r\n", bytes.size());
    queued_ += bytes;
    if (is_chunked_) queued_ += "\r\n";
}

/// Sends what is queued, unless a write is in flight: on_written() comes back here.
void HttpConnection::write() {
    if (is_writing_) return;
    if (write_offset_ == writing_.size()) {
        writing_.clear();
        write_offset_ = 0;
        writing_.swap(queued_);
    }
    if (writing_.empty()) return on_all_written();
    is_writing_ = true;
    last_progress_ = now();
    stream_->async_write_some(std::string_view(writing_).substr(write_offset_),
                              [self = shared_from_this()](auto error, auto bytes) {
                                  self->is_writing_ = false;
                                  self->on_written(error, bytes);
                              });
}

void HttpConnection::on_written(boost::system::error_code error, std::size_t bytes) {
    if (state_ == State::Closed) return;
    if (error) return close();
    write_offset_ += bytes;
    if (write_offset_ < writing_.size() || !queued_.empty()) return write();
    on_all_written();
}

void HttpConnection::on_all_written() {
    if (state_ != State::Answering) return;
    if (exchange_) exchange_->on_bytes_sent(std::exchange(payload_bytes_, 0));
    if (is_answer_complete_) return end_answer();
    pump();
}

void HttpConnection::end_answer() {
    if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->detach();
    release_body();
    if (!keep_alive_ || owner_.is_draining()) return linger();
    is_answer_complete_ = false;
    enter(State::Idle, owner_.limits().idle_timeout);
    consume();
}

/// Closing with unread bytes in the kernel would reset the connection and lose the answer.
void HttpConnection::linger() {
    enter(State::Lingering, owner_.limits().linger_timeout);
    stream_->shutdown_write();
    pending_ = std::string();
    read();
}

}  // namespace artel::api
