// SPDX-License-Identifier: Apache-2.0
#include "api/openai_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/openai_response.hpp"
#include "api/random_name.hpp"
#include "api/status_json.hpp"
#include "api/token_routes.hpp"

namespace artel::api {
namespace {

constexpr std::string_view kHealthPath = "/health";
constexpr std::string_view kModelsPath = "/v1/models";
constexpr std::string_view kReadMethods = "GET, HEAD, OPTIONS";
constexpr std::string_view kWriteMethods = "POST, OPTIONS";
constexpr int kHealthRetrySeconds = 2;

constexpr std::array<std::string_view, 3> kReadPaths = {kHealthPath, "/metrics", "/v1/cluster"};
constexpr std::array<std::string_view, 5> kWritePaths = {
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/tokenize", "/detokenize"};

bool is_model_path(std::string_view path) {
    return path == kModelsPath || path.starts_with("/v1/models/");
}

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& paths, std::string_view path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
}

/// The methods of a path; empty when there is no such path.
std::string_view methods_of(std::string_view path) {
    if (holds(kReadPaths, path) || is_model_path(path)) return kReadMethods;
    return holds(kWritePaths, path) ? kWriteMethods : std::string_view();
}

bool is_listed(std::string_view methods, std::string_view method) {
    for (std::string_view rest = methods; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(", "), rest.size());
        if (rest.substr(0, comma) == method) return true;
        rest.remove_prefix(std::min(comma + 2, rest.size()));
    }
    return false;
}

/// "a%2Fb" -> "a/b"; what is no valid escape stays.
std::string decode_percent(std::string_view text) {
    const auto digit = [](char c) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    std::string decoded;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_escape = text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
                               digit(text[i + 2]) >= 0;
        decoded +=
            is_escape ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
        if (is_escape) i += 2;
    }
    return decoded;
}

ApiError busy() {
    ApiError error = ApiError::of_status(429, "too many prompts are waiting to be read; try again");
    error.type = "rate_limit_error";
    error.code = "queue_full";
    return error;
}

ApiError not_ready(const std::string& message) {
    ApiError error = ApiError::of_status(503, "not ready: " + message);
    error.code = "not_ready";
    error.retry_after_seconds = kHealthRetrySeconds;
    return error;
}

}  // namespace

std::optional<HttpResponse> OpenAiRoutes::refuse_early(const HttpRequest& head) {
    if (head.path != kHealthPath && !parts_.keys.allows(head.header("authorization"))) {
        ApiError error = ApiError::of_status(
            401, "missing or wrong API key; expected the header 'Authorization: Bearer KEY'");
        error.type = "authentication_error";
        error.code = "invalid_api_key";
        return error.to_response();
    }
    const std::string_view methods = methods_of(head.path);
    if (methods.empty()) {
        ApiError error = ApiError::of_status(404, "no such path");
        error.code = "not_found";
        return error.to_response();
    }
    if (!is_listed(methods, head.method)) {
        ApiError error = ApiError::of_status(405, fmt::format("expected {}", methods));
        error.code = "method_not_allowed";
        HttpResponse response = error.to_response();
        response.headers.push_back({"Allow", std::string(methods)});
        return response;
    }
    const bool is_json =
        head.header("content-type").value_or("").substr(0, 16) == "application/json";
    if (head.method == "POST" && head.header("origin") && !is_json)
        return ApiError::of_status(415, "expected Content-Type: application/json").to_response();
    return std::nullopt;
}

void OpenAiRoutes::on_request(HttpRequest request, Responder responder) {
    if (request.method == "OPTIONS")
        return responder.respond({.status = 204,
                                  .content_type = "",
                                  .headers = {{"Allow", std::string(methods_of(request.path))}},
                                  .body = ""});
    const std::string& path = request.path;
    if (path == kHealthPath) return responder.respond(health());
    if (path == "/metrics")
        return responder.respond({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                  .headers = {},
                                  .body = metrics_.to_text(parts_.requests.health())});
    if (path == "/v1/cluster")
        return responder.respond(
            {.headers = {}, .body = to_cluster_json(parts_.requests.health(), parts_.model.alias)});
    if (path == "/v1/chat/completions")
        return complete(CompletionKind::Chat, std::move(request), responder);
    if (path == "/v1/completions")
        return complete(CompletionKind::Text, std::move(request), responder);
    if (path == "/tokenize")
        return answer_in_pool(answer_tokenize, std::move(request.body), responder);
    if (path == "/detokenize")
        return answer_in_pool(answer_detokenize, std::move(request.body), responder);
    if (path == "/v1/embeddings")
        return answer_in_pool(answer_embeddings, std::move(request.body), responder);
    const std::string_view id = std::string_view(path).substr(kModelsPath.size());
    responder.respond(models(id.empty() ? id : id.substr(1)));
}

HttpResponse OpenAiRoutes::error_response(int status, std::string_view message) {
    return ApiError::of_status(status, std::string(message)).to_response();
}

HttpResponse OpenAiRoutes::health() const {
    const cluster::Health health = parts_.requests.health();
    HttpResponse response{.headers = {}, .body = to_health_json(health, parts_.model.alias)};
    if (health.state == cluster::ServiceState::Serving) return response;
    response.status = 503;
    response.headers.push_back({"Retry-After", std::to_string(kHealthRetrySeconds)});
    return response;
}

HttpResponse OpenAiRoutes::models(std::string_view id) const {
    const cluster::Health health = parts_.requests.health();
    // A balancer that asks for models must not send chats to a server that can't answer them.
    if (health.state != cluster::ServiceState::Serving &&
        health.state != cluster::ServiceState::Draining)
        return not_ready(health.message).to_response();
    const ModelCard card{
        .id = parts_.model.alias, .created = parts_.model_created, .context = health.context};
    if (id.empty()) return {.headers = {}, .body = to_model_list_json(card)};
    if (decode_percent(id) == card.id) return {.headers = {}, .body = to_model_json(card)};
    return check_model(decode_percent(id), parts_.model)->to_response();
}

void OpenAiRoutes::complete(CompletionKind kind, HttpRequest request, const Responder& responder) {
    const bool is_chat = kind == CompletionKind::Chat;
    const auto answer = std::make_shared<CompletionAnswer>(
        CompletionAnswer::Parts{.head = {.kind = kind,
                                         .id = random_name(is_chat ? "chatcmpl-" : "cmpl-"),
                                         .created = parts_.unix_time(),
                                         .model = parts_.model.alias},
                                .request_id = request.id,
                                .responder = responder,
                                .tokenizer = *parts_.model.tokenizer,
                                .requests = parts_.requests,
                                .metrics = metrics_});
    answer->watch_client();
    const auto prepare = is_chat ? prepare_chat : prepare_text;
    const bool is_taken = parts_.pool.try_post(
        [this, answer, prepare, mailbox = mailbox_, body = std::move(request.body)] {
            if (answer->client_is_gone()) return;
            auto prepared = prepare(body, parts_.model, parts_.requests.health().context);
            // std::function wants copyable captures.
            const auto shared = std::make_shared<decltype(prepared)>(std::move(prepared));
            mailbox->post([answer, mailbox, shared] {
                if (auto* error = std::get_if<ApiError>(shared.get()))
                    answer->refuse(*error);
                else
                    answer->start(std::get<PreparedCompletion>(std::move(*shared)), mailbox);
            });
        });
    if (!is_taken) answer->refuse(busy());
}

void OpenAiRoutes::answer_in_pool(HttpResponse (*answer)(std::string_view, const ChatModel&),
                                  std::string body, const Responder& responder) {
    const bool is_taken = parts_.pool.try_post([this, answer, responder, text = std::move(body)] {
        responder.respond(answer(text, parts_.model));
    });
    if (!is_taken) responder.respond(busy().to_response());
}

}  // namespace artel::api
