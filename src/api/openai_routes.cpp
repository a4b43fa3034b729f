// SPDX-License-Identifier: Apache-2.0
#include "api/openai_routes.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/chat_answer.hpp"
#include "api/json_document.hpp"
#include "api/openai_response.hpp"

namespace artel::api {
namespace {

constexpr std::string_view kHealthPath = "/health";
constexpr std::string_view kModelsPath = "/v1/models";
constexpr std::string_view kChatPath = "/v1/chat/completions";
constexpr std::string_view kReadMethods = "GET, HEAD, OPTIONS";
constexpr std::string_view kWriteMethods = "POST, OPTIONS";
constexpr int kHealthRetrySeconds = 2;

bool is_model_path(std::string_view path) {
    return path == kModelsPath || path.starts_with("/v1/models/");
}

/// The methods of a path; empty when there is no such path.
std::string_view methods_of(std::string_view path) {
    if (path == kHealthPath || is_model_path(path)) return kReadMethods;
    if (path == kChatPath) return kWriteMethods;
    return {};
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

std::string random_id() {
    std::array<unsigned char, 12> bytes{};
    RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
    std::string id = "chatcmpl-";
    for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
    return id;
}

std::string_view state_name(cluster::ServiceState state) {
    switch (state) {
        case cluster::ServiceState::WaitingForWorkers:
            return "waiting_for_workers";
        case cluster::ServiceState::Loading:
            return "loading";
        case cluster::ServiceState::WarmingUp:
            return "warming_up";
        case cluster::ServiceState::Serving:
            return "ok";
        case cluster::ServiceState::Draining:
            return "draining";
        case cluster::ServiceState::Stopped:
            return "stopped";
    }
    return "unknown";
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
    if (request.path == kHealthPath) return responder.respond(health());
    if (request.path == kChatPath) return chat(std::move(request.body), responder);
    std::string_view id = std::string_view(request.path).substr(kModelsPath.size());
    responder.respond(models(id.empty() ? id : id.substr(1)));
}

HttpResponse OpenAiRoutes::error_response(int status, std::string_view message) {
    return ApiError::of_status(status, std::string(message)).to_response();
}

HttpResponse OpenAiRoutes::health() const {
    const cluster::Health health = parts_.requests.health();
    if (health.state == cluster::ServiceState::Serving)
        return {.headers = {}, .body = R"({"status":"ok"})"};
    nlohmann::ordered_json body{{"status", state_name(health.state)}, {"message", health.message}};
    if (health.missing_layers.count > 0)
        body["missing_layers"] = {{"first", health.missing_layers.first},
                                  {"count", health.missing_layers.count}};
    if (health.missing_bytes > 0) body["missing_bytes"] = health.missing_bytes;
    return {.status = 503,
            .headers = {{"Retry-After", std::to_string(kHealthRetrySeconds)}},
            .body = to_text(body)};
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
    ApiError error = ApiError::of_status(404, "no such model; this server has '" + card.id + "'");
    error.param = "model";
    error.code = "model_not_found";
    return error.to_response();
}

void OpenAiRoutes::chat(std::string body, const Responder& responder) {
    const auto answer = std::make_shared<ChatAnswer>(
        CompletionHead{
            .id = random_id(), .created = parts_.unix_time(), .model = parts_.model.alias},
        responder, *parts_.model.tokenizer, parts_.requests);
    answer->watch_client();
    const bool is_taken =
        parts_.pool.try_post([this, answer, mailbox = mailbox_, text = std::move(body)]() mutable {
            if (answer->client_is_gone()) return;
            auto prepared = prepare_chat(text, parts_.model, parts_.requests.health().context);
            // std::function wants copyable captures.
            auto shared = std::make_shared<decltype(prepared)>(std::move(prepared));
            mailbox->post([answer, mailbox, shared] {
                if (auto* error = std::get_if<ApiError>(shared.get()))
                    answer->refuse(*error);
                else
                    answer->start(std::get<PreparedChat>(std::move(*shared)), mailbox);
            });
        });
    if (is_taken) return;
    ApiError error = ApiError::of_status(429, "too many prompts are waiting to be read; try again");
    error.type = "rate_limit_error";
    error.code = "queue_full";
    answer->refuse(error);
}

}  // namespace artel::api
