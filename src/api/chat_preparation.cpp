// SPDX-License-Identifier: Apache-2.0
#include "api/chat_preparation.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace artel::api {
namespace {

constexpr int kRetryDefaultSeconds = 5;

int retry_seconds(Duration after) {
    const auto whole = std::chrono::ceil<std::chrono::seconds>(after).count();
    return whole <= 0 ? kRetryDefaultSeconds : static_cast<int>(std::min<long>(whole, 3600));
}

ApiError service_error(std::string code, std::string message, Duration retry_after) {
    ApiError error = ApiError::of_status(503, std::move(message));
    error.code = std::move(code);
    error.retry_after_seconds = retry_seconds(retry_after);
    return error;
}

/// The template is the model's, the messages are the client's: what it refuses is a bad request.
ApiError render_error(const Error& error) {
    if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kInternal)
        return to_api_error(error);
    ApiError api = ApiError::invalid(
        "messages", fmt::format("chat template: {}", std::string(error.message())));
    api.code = "chat_template_error";
    return api;
}

std::variant<std::vector<text::TokenId>, ApiError> prompt_tokens(const ChatRequest& chat,
                                                                 const ChatModel& model) {
    if (!model.render)
        return ApiError::unsupported("messages",
                                     "this model has no chat template; the server can be given one "
                                     "with --chat-template");
    const auto prompt = model.render({.messages_json = chat.messages_json,
                                      .tools_json = {},
                                      .adds_generation_prompt = true,
                                      .now = {}});
    if (!prompt.ok()) return render_error(prompt.status());
    return model.tokenizer->tokenize(prompt->segments, text::AddBos::IfModelSays);
}

std::uint64_t random_seed() {
    std::uint64_t seed = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&seed), sizeof(seed));
    return seed >> 1U;
}

cluster::Request to_cluster_request(const ChatRequest& chat, std::vector<text::TokenId> prompt,
                                    const text::Tokenizer& tokenizer) {
    const ChatSampling& wanted = chat.sampling;
    cluster::Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = chat.tokens_max.value_or(0);
    request.sampling.temperature = wanted.temperature;
    request.sampling.top_k = wanted.top_k;
    request.sampling.top_p = wanted.top_p;
    request.sampling.min_p = wanted.min_p;
    request.sampling.presence_penalty = wanted.presence_penalty;
    request.sampling.frequency_penalty = wanted.frequency_penalty;
    request.sampling.repetition_penalty = wanted.repetition_penalty;
    request.sampling.seed = wanted.seed ? *wanted.seed : random_seed();
    request.sampling.wants_logprob = chat.wants_logprobs;
    request.sampling.top_logprobs = chat.top_logprobs;
    for (const auto& [token, bias] : wanted.logit_bias)
        request.sampling.logit_bias.push_back({.token = token, .bias = bias});
    const auto& end = tokenizer.end_of_generation();
    if (!chat.ignores_end) request.end_tokens.assign(end.begin(), end.end());
    return request;
}

}  // namespace

std::variant<PreparedChat, ApiError> prepare_chat(std::string_view body, const ChatModel& model,
                                                  std::uint32_t context) {
    auto parsed = parse_chat_request(body);
    if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
    auto& chat = std::get<ChatRequest>(parsed);
    if (chat.model != model.alias) {
        ApiError error = ApiError::invalid(
            "model", fmt::format("the model '{:.128}' does not exist; this server has '{}'",
                                 chat.model, model.alias));
        error.http_status = 404;
        error.code = "model_not_found";
        return error;
    }
    const std::size_t vocabulary = model.tokenizer->vocabulary_size();
    for (const auto& [token, bias] : chat.sampling.logit_bias)
        if (token >= vocabulary)
            return ApiError::invalid(
                "logit_bias", fmt::format("logit_bias: token {} is not one of the model's {}",
                                          token, vocabulary));
    auto tokens = prompt_tokens(chat, model);
    if (auto* error = std::get_if<ApiError>(&tokens)) return std::move(*error);
    auto& prompt = std::get<std::vector<text::TokenId>>(tokens);
    if (prompt.empty()) return ApiError::invalid("messages", "messages: the prompt is empty");
    if (context > 0 && prompt.size() >= context) return prompt_too_long(prompt.size(), context);
    PreparedChat prepared{chat, to_cluster_request(chat, std::move(prompt), *model.tokenizer)};
    const std::uint64_t room = context - prepared.request.prompt.size();
    if (context > 0 && prepared.request.max_tokens > room)
        prepared.request.max_tokens = static_cast<std::uint32_t>(room);
    return prepared;
}

ApiError prompt_too_long(std::uint64_t prompt_tokens, std::uint32_t context) {
    ApiError error = ApiError::invalid(
        "messages",
        fmt::format("This model's maximum context length is {} tokens. However, your messages "
                    "resulted in {} tokens. Please reduce the length of the messages.",
                    context, prompt_tokens));
    error.code = "context_length_exceeded";
    return error;
}

ApiError to_api_error(const cluster::Refusal& refusal) {
    if (const auto* long_one = std::get_if<cluster::PromptTooLong>(&refusal))
        return prompt_too_long(long_one->prompt_tokens, long_one->context);
    if (const auto* full = std::get_if<cluster::QueueFull>(&refusal)) {
        ApiError error = ApiError::of_status(
            429, fmt::format("{} requests are waiting already; try again later", full->queued));
        error.type = "rate_limit_error";
        error.code = "queue_full";
        error.retry_after_seconds = retry_seconds(full->retry_after);
        return error;
    }
    if (const auto* early = std::get_if<cluster::NotReady>(&refusal))
        return service_error("not_ready", "not ready: " + early->missing, early->retry_after);
    const auto& invalid = std::get<cluster::InvalidRequest>(refusal);
    return ApiError::invalid(invalid.parameter, invalid.message);
}

ApiError to_api_error(const cluster::RequestFailure& failure) {
    switch (failure.kind) {
        case cluster::FailureKind::WorkerLost:
            return service_error("worker_lost", failure.message, failure.retry_after);
        case cluster::FailureKind::ShuttingDown:
            return service_error("shutting_down", failure.message, failure.retry_after);
        case cluster::FailureKind::DeadlineExceeded: {
            ApiError error = ApiError::of_status(504, failure.message);
            error.code = "timeout";
            return error;
        }
        case cluster::FailureKind::StepFailed:
            break;
    }
    ApiError error = ApiError::of_status(500, failure.message);
    error.code = "step_failed";
    return error;
}

}  // namespace artel::api
