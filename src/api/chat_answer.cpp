// SPDX-License-Identifier: Apache-2.0
#include "api/chat_answer.hpp"

#include <algorithm>
#include <utility>

#include "api/answer_sink.hpp"
#include "base/log.hpp"

namespace artel::api {
namespace {

constexpr float kLogprobMin = -9999.0F;  // JSON has no minus infinity

}  // namespace

ChatAnswer::ChatAnswer(CompletionHead head, Responder responder, const text::Tokenizer& tokenizer,
                       cluster::RequestPort& requests)
    : head_(std::move(head)),
      responder_(std::move(responder)),
      tokenizer_(tokenizer),
      requests_(requests),
      detokenizer_(tokenizer) {}

void ChatAnswer::watch_client() {
    responder_.on_disconnect([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->on_client_gone();
    });
}

void ChatAnswer::on_client_gone() {
    client_is_gone_ = true;
    if (is_over_) return;
    is_over_ = true;
    cancel();
    log_end("client gone");
}

void ChatAnswer::start(PreparedChat prepared, std::shared_ptr<IoMailbox> mailbox) {
    if (is_over_) return;
    chat_ = std::move(prepared.chat);
    usage_.prompt_tokens = prepared.request.prompt.size();
    auto stops = text::StopStrings::create(chat_.stops);
    if (!stops.ok())
        return refuse(ApiError::invalid("stop", std::string(stops.status().message())));
    stops_ = *std::move(stops);
    // The sink only posts, so nothing of this request runs before submit() has returned.
    request_ =
        requests_.submit(std::move(prepared.request),
                         std::make_shared<AnswerSink>(shared_from_this(), std::move(mailbox)));
}

void ChatAnswer::cancel() {
    if (request_.value != 0) requests_.cancel(request_);
}

void ChatAnswer::refuse(const ApiError& error) {
    if (is_over_) return;
    fail(error);
}

void ChatAnswer::on_refused(const cluster::Refusal& refusal) {
    if (!is_over_) fail(to_api_error(refusal));
}

void ChatAnswer::on_failed(const cluster::RequestFailure& failure) {
    if (!is_over_) fail(to_api_error(failure));
}

void ChatAnswer::on_token(const cluster::Token& token) {
    if (is_over_) return;
    if (chat_.is_stream && !is_streaming_) begin_stream();
    if (token.is_end) return;  // on_finished follows
    if (names_a_stop(token)) {
        cancel();
        return on_finished(cluster::FinishReason::Stop);
    }
    ++usage_.completion_tokens;
    if (chat_.wants_logprobs) {
        logprobs_.push_back(to_logprob(token.id, token.logprob));
        for (const auto& other : token.top_logprobs)
            logprobs_.back().top.push_back(to_logprob(other.token, other.logprob));
    }
    show(stops_.add(detokenizer_.add(token.id)));
    if (is_over_ || !stops_.stopped()) return;
    cancel();
    end("stop");
}

/// A stop string may be the spelling of a control token, which has no text of its own.
bool ChatAnswer::names_a_stop(const cluster::Token& token) const {
    return tokenizer_.is_control(token.id) &&
           std::find(chat_.stops.begin(), chat_.stops.end(), tokenizer_.token_spelling(token.id)) !=
               chat_.stops.end();
}

void ChatAnswer::on_finished(cluster::FinishReason reason) {
    if (is_over_) return;
    if (reason == cluster::FinishReason::Cancelled)
        return fail(to_api_error(unavailable("the request was cancelled by the server")));
    if (chat_.is_stream && !is_streaming_) begin_stream();
    std::string rest = stops_.add(detokenizer_.finish());
    if (!stops_.stopped()) rest += stops_.finish();
    show(std::move(rest));
    if (is_over_) return;
    end(reason == cluster::FinishReason::Stop || stops_.stopped() ? "stop" : "length");
}

void ChatAnswer::begin_stream() {
    is_streaming_ = true;
    responder_.start_stream(sse_head());
    const AnswerPart first{.has_role = true, .content = "", .logprobs = {}, .finish_reason = ""};
    responder_.push(to_sse_event(to_chunk_json(head_, first, chat_.includes_usage)));
}

void ChatAnswer::show(std::string text) {
    if (text.empty()) return;
    if (!chat_.is_stream) {
        content_ += text;
        return;
    }
    AnswerPart part{
        .has_role = false, .content = std::move(text), .logprobs = {}, .finish_reason = ""};
    if (chat_.wants_logprobs) part.logprobs = std::exchange(logprobs_, {});
    if (!responder_.push(to_sse_event(to_chunk_json(head_, part, chat_.includes_usage))))
        on_client_gone();
}

void ChatAnswer::end(std::string_view finish_reason) {
    is_over_ = true;
    AnswerPart last{.has_role = false,
                    .content = {},
                    .logprobs = {},
                    .finish_reason = std::string(finish_reason)};
    if (chat_.wants_logprobs) last.logprobs = std::exchange(logprobs_, {});
    if (chat_.is_stream) {
        responder_.push(to_sse_event(to_chunk_json(head_, last, chat_.includes_usage)));
        if (chat_.includes_usage) responder_.push(to_sse_event(to_usage_chunk_json(head_, usage_)));
        responder_.push(std::string(kSseDone));
        responder_.finish();
    } else {
        last.content = std::move(content_);
        responder_.respond({.headers = {}, .body = to_completion_json(head_, last, usage_)});
    }
    log_end(finish_reason);
}

void ChatAnswer::fail(const ApiError& error) {
    is_over_ = true;
    if (is_streaming_) {
        responder_.push(to_sse_error(error));
        responder_.finish();
    } else {
        responder_.respond(error.to_response());
    }
    log_end(error.code.empty() ? error.type : error.code);
}

AnswerLogprob ChatAnswer::to_logprob(text::TokenId token, float logprob) const {
    const bool is_control = tokenizer_.is_control(token);
    return {.bytes = std::string(is_control ? tokenizer_.token_spelling(token)
                                            : tokenizer_.token_bytes(token)),
            .logprob = logprob > kLogprobMin ? logprob : kLogprobMin,
            .top = {}};
}

void ChatAnswer::log_end(std::string_view finish_reason) const {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began_);
    log_info("chat completion", {{"id", head_.id},
                                 {"end", finish_reason},
                                 {"prompt_tokens", usage_.prompt_tokens},
                                 {"completion_tokens", usage_.completion_tokens},
                                 {"ms", took.count()}});
}

}  // namespace artel::api
