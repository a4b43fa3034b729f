// SPDX-License-Identifier: Apache-2.0
// ChatAnswer: one chat completion from the prepared request to the client's end of the stream:
// tokens -> text -> stop strings -> JSON. Lives on the HTTP io thread; only client_is_gone() may be
// asked elsewhere. Kept alive by the pool job that prepares it, then by its AnswerSink.
// 1. The client gets exactly one end: a whole answer, an error, or a stream with one finish_reason
//    and [DONE], or with an error event and nothing after it.
// 2. A stream begins with the first token; before that an error is still an HTTP status.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "api/chat_preparation.hpp"
#include "api/http_server.hpp"
#include "api/io_mailbox.hpp"
#include "api/openai_response.hpp"
#include "cluster/request.hpp"
#include "text/detokenizer.hpp"
#include "text/stop_strings.hpp"

namespace artel::api {

class ChatAnswer : public std::enable_shared_from_this<ChatAnswer> {
  public:
    ChatAnswer(CompletionHead head, Responder responder, const text::Tokenizer& tokenizer,
               cluster::RequestPort& requests);

    /// Ends the request when the client goes away. Once, before anything else.
    void watch_client();
    bool client_is_gone() const { return client_is_gone_; }

    void refuse(const ApiError& error);
    void start(PreparedChat prepared, std::shared_ptr<IoMailbox> mailbox);

    void on_refused(const cluster::Refusal& refusal);
    void on_token(const cluster::Token& token);
    void on_finished(cluster::FinishReason reason);
    void on_failed(const cluster::RequestFailure& failure);

  private:
    void on_client_gone();
    void begin_stream();
    void show(std::string text);
    void end(std::string_view finish_reason);
    void fail(const ApiError& error);
    void cancel();
    bool names_a_stop(const cluster::Token& token) const;
    AnswerLogprob to_logprob(text::TokenId token, float logprob) const;
    void log_end(std::string_view finish_reason) const;

    const CompletionHead head_;
    Responder responder_;
    const text::Tokenizer& tokenizer_;
    cluster::RequestPort& requests_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();

    ChatRequest chat_;
    cluster::RequestId request_;  // 0: not submitted
    text::StreamDetokenizer detokenizer_;
    text::StopStrings stops_;
    Usage usage_;
    std::string content_;                  // of an answer that is not streamed
    std::vector<AnswerLogprob> logprobs_;  // not shown yet
    bool is_streaming_ = false;            // the head and the first chunk are out
    bool is_over_ = false;
    std::atomic<bool> client_is_gone_ = false;
};

}  // namespace artel::api
