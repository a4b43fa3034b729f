// SPDX-License-Identifier: Apache-2.0
// OpenAiRoutes: which path does what. GET /health, /metrics, /v1/models[/{id}] and /v1/cluster;
// POST /v1/chat/completions, /v1/completions, /v1/embeddings, /tokenize and /detokenize. Checks the
// API key on every path but /health before a body is read. Sends no CORS header, so a web page of
// another origin can't read answers; nor can one post (its content type would have to be JSON, for
// which browsers ask first). Runs on the HTTP io thread; bodies go to the WorkPool.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/api_keys.hpp"
#include "api/completion_answer.hpp"
#include "api/http_server.hpp"
#include "api/io_mailbox.hpp"
#include "api/metrics.hpp"
#include "api/preparation.hpp"
#include "api/work_pool.hpp"
#include "cluster/request.hpp"

namespace artel::api {

class OpenAiRoutes : public HttpHandler {
  public:
    struct Parts {
        ChatModel model;
        cluster::RequestPort& requests;
        WorkPool& pool;
        ApiKeys keys;
        std::function<std::int64_t()> unix_time;
        std::int64_t model_created = 0;
    };
    explicit OpenAiRoutes(Parts parts) : parts_(std::move(parts)) {}
    /// Before the first request.
    void set_mailbox(std::shared_ptr<IoMailbox> mailbox) { mailbox_ = std::move(mailbox); }

    std::optional<HttpResponse> refuse_early(const HttpRequest& head) override;
    void on_request(HttpRequest request, Responder responder) override;
    HttpResponse error_response(int status, std::string_view message) override;

  private:
    HttpResponse health() const;
    HttpResponse models(std::string_view id) const;  // empty: the list
    void complete(CompletionKind kind, HttpRequest request, const Responder& responder);
    void answer_in_pool(HttpResponse (*answer)(std::string_view, const ChatModel&),
                        std::string body, const Responder& responder);

    Parts parts_;
    Metrics metrics_;
    std::shared_ptr<IoMailbox> mailbox_;
};

}  // namespace artel::api
