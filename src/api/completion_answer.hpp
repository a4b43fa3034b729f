// SPDX-License-Identifier: Apache-2.0
// CompletionAnswer: one chat or text completion from the prepared requests to the client's end of
// the stream. Each choice is one request of the cluster, so that one that reaches a stop string
// frees its place at once. Lives on the HTTP io thread; only client_is_gone() may be asked
// elsewhere. Kept alive by the pool job that prepares it, then by its AnswerSinks.
// 1. The client gets exactly one end: a whole answer, an error, or a stream with one finish_reason
//    a choice and [DONE], or with an error event and nothing after it.
// 2. A stream begins with the first token; before that an error is still an HTTP status.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/choice_text.hpp"
#include "api/http_server.hpp"
#include "api/io_mailbox.hpp"
#include "api/metrics.hpp"
#include "api/openai_response.hpp"
#include "api/preparation.hpp"
#include "cluster/request.hpp"

namespace artel::api {

class CompletionAnswer : public std::enable_shared_from_this<CompletionAnswer> {
  public:
    struct Parts {
        CompletionHead head;
        std::string request_id;  // of the HTTP request, for the log
        Responder responder;
        const text::Tokenizer& tokenizer;
        cluster::RequestPort& requests;
        Metrics& metrics;
    };
    explicit CompletionAnswer(Parts parts) : parts_(std::move(parts)) {}

    /// Ends the requests when the client goes away. Once, before anything else.
    void watch_client();
    bool client_is_gone() const { return client_is_gone_; }

    void refuse(const ApiError& error);
    void start(PreparedCompletion prepared, const std::shared_ptr<IoMailbox>& mailbox);

    // `choice` is the position in PreparedCompletion::requests.
    void on_refused(const cluster::Refusal& refusal);
    void on_token(std::uint32_t choice, const cluster::Token& token);
    void on_finished(std::uint32_t choice, cluster::FinishReason reason);
    void on_failed(const cluster::RequestFailure& failure);

  private:
    using Time = std::chrono::steady_clock::time_point;
    struct Choice {
        Choice(ChoiceText choice_text, std::string shown_first)
            : text(std::move(choice_text)), echo(std::move(shown_first)) {}
        ChoiceText text;
        std::string echo;            // shown before anything else
        AnswerPart whole;            // of an answer that is not streamed
        cluster::RequestId request;  // 0: not submitted
        std::optional<Time> last_token;
        bool has_begun = false;
        bool is_over = false;
    };

    void on_client_gone();
    void begin(Choice& choice, std::uint32_t index);
    void show(Choice& choice, AnswerPart part);
    void end_choice(Choice& choice, cluster::FinishReason reason);
    void end();
    void fail(const ApiError& error);
    void cancel();
    void count_token(Choice& choice);
    void note_end(std::string_view how);

    const Parts parts_;
    const Time began_ = std::chrono::steady_clock::now();

    GenerationOptions options_;
    std::vector<Choice> choices_;
    std::size_t choices_left_ = 0;
    Usage usage_;
    bool is_streaming_ = false;  // the head is out
    bool is_over_ = false;
    std::atomic<bool> client_is_gone_ = false;
};

}  // namespace artel::api
