// SPDX-License-Identifier: Apache-2.0
#include "api/preparation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "api/openai_request.hpp"
#include "api/random_name.hpp"
#include "api/text_request.hpp"
#include "base/random.hpp"
#include "text/detokenizer.hpp"

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
/// That nothing answers in time is not the client's fault.
ApiError render_error(const Error& error) {
    if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kInternal ||
        error.code() == ErrorCode::kDeadlineExceeded)
        return to_api_error(error);
    ApiError api = ApiError::invalid(
        "messages", fmt::format("chat template: {}", std::string(error.message())));
    api.code = "chat_template_error";
    return api;
}

using Tokens = std::vector<text::TokenId>;

/// The refusal of a text that is too long whatever its tokens are, before they are made.
std::optional<ApiError> check_bytes(std::uint64_t bytes, const ChatModel& model,
                                    std::uint32_t context) {
    const std::uint64_t fewest = model.tokenizer->fewest_tokens(bytes);
    if (context == 0 || fewest < context) return std::nullopt;
    return prompt_too_long(fewest, context, "at least ");
}

std::variant<Tokens, ApiError> chat_tokens(const ChatRequest& chat, const ChatModel& model,
                                           std::uint32_t context) {
    if (!model.render)
        return ApiError::unsupported("messages",
                                     "no chat with this model: " + model.no_chat_reason +
                                         " (artel serve --chat-template FILE)");
    const auto prompt = model.render({.messages_json = chat.messages_json,
                                      .tools_json = chat.tools_json,
                                      .adds_generation_prompt = true,
                                      .now = {}});
    if (!prompt.ok()) return render_error(prompt.status());
    std::uint64_t bytes = 0;
    for (const text::PromptSegment& segment : prompt->segments) bytes += segment.text.size();
    if (auto error = check_bytes(bytes, model, context)) return *std::move(error);
    return model.tokenizer->tokenize(prompt->segments, text::AddBos::IfModelSays);
}

/// Choice 0 has the seed itself, so that asking for more answers does not change the first.
std::uint64_t seed_of_choice(std::uint64_t seed, std::uint32_t choice) {
    return choice == 0 ? seed : Random(seed + choice).next() >> 1U;
}

cluster::Request to_cluster_request(const GenerationOptions& options, const Tokens& prompt,
                                    const text::Tokenizer& tokenizer) {
    const Sampling& wanted = options.sampling;
    cluster::Request request;
    request.prompt = prompt;
    request.max_tokens = options.tokens_max.value_or(0);
    request.sampling.temperature = wanted.temperature;
    request.sampling.top_k = wanted.top_k;
    request.sampling.top_p = wanted.top_p;
    request.sampling.min_p = wanted.min_p;
    request.sampling.presence_penalty = wanted.presence_penalty;
    request.sampling.frequency_penalty = wanted.frequency_penalty;
    request.sampling.repetition_penalty = wanted.repetition_penalty;
    request.sampling.wants_logprob = options.wants_logprobs;
    request.sampling.top_logprobs = options.top_logprobs;
    for (const auto& [token, bias] : wanted.logit_bias)
        request.sampling.logit_bias.push_back({.token = token, .bias = bias});
    const auto& end = tokenizer.end_of_generation();
    if (!options.ignores_end) request.end_tokens.assign(end.begin(), end.end());
    return request;
}

/// The requests of all choices of one prompt.
std::optional<ApiError> add_prompt(const Tokens& prompt, const std::string& echo,
                                   std::uint32_t context, const text::Tokenizer& tokenizer,
                                   PreparedCompletion& prepared) {
    if (context > 0 && prompt.size() >= context) return prompt_too_long(prompt.size(), context);
    prepared.prompt_tokens += prompt.size();
    cluster::Request request = to_cluster_request(prepared.options, prompt, tokenizer);
    const std::uint64_t room = context - prompt.size();
    if (context > 0 && request.max_tokens > room)
        request.max_tokens = static_cast<std::uint32_t>(room);
    const auto& wanted = prepared.options.sampling.seed;
    const std::uint64_t seed = wanted ? *wanted : random_seed();
    for (std::uint32_t choice = 0; choice < prepared.options.choices; ++choice) {
        request.sampling.seed = seed_of_choice(seed, choice);
        prepared.requests.push_back(request);
        prepared.echoes.push_back(echo);
    }
    return std::nullopt;
}

std::optional<ApiError> check_options(const GenerationOptions& options, const ChatModel& model) {
    if (auto error = check_model(options.model, model)) return error;
    const std::size_t vocabulary = model.tokenizer->vocabulary_size();
    for (const auto& [token, bias] : options.sampling.logit_bias)
        if (token >= vocabulary)
            return ApiError::invalid(
                "logit_bias", fmt::format("logit_bias: token {} is not one of the model's {}",
                                          token, vocabulary));
    return std::nullopt;
}

std::optional<ApiError> check_tools(const ChatRequest& chat, const ChatModel& model) {
    if (chat.tools_json.empty()) return std::nullopt;
    if (model.tool_calls == text::ToolCallFormat::None)
        return ApiError::unsupported("tools", "tools: this model's chat template takes no tools");
    if (model.tool_calls == text::ToolCallFormat::Unknown)
        return ApiError::unsupported(
            "tools", "tools: the form in which this model writes its calls is not supported yet");
    return std::nullopt;
}

std::variant<Tokens, ApiError> text_tokens(const TextPrompt& prompt, const ChatModel& model,
                                           std::uint32_t context) {
    if (const auto* text = std::get_if<std::string>(&prompt)) {
        if (auto error = check_bytes(text->size(), model, context)) return *std::move(error);
        Tokens tokens = model.tokenizer->tokenize(
            *text, {.special = text::ParseSpecial::Yes, .bos = text::AddBos::IfModelSays});
        if (tokens.empty()) return ApiError::invalid("prompt", "prompt: holds no token");
        return tokens;
    }
    const auto& tokens = std::get<Tokens>(prompt);
    for (const text::TokenId token : tokens)
        if (token >= model.tokenizer->vocabulary_size())
            return ApiError::invalid(
                "prompt", fmt::format("prompt: token {} is not one of the model's {}", token,
                                      model.tokenizer->vocabulary_size()));
    return tokens;
}

std::string echo_of(const TextPrompt& prompt, const text::Tokenizer& tokenizer) {
    if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
    return text::detokenize(tokenizer, std::get<Tokens>(prompt),
                            {.starts_text = true, .shows_control = false});
}

}  // namespace

std::optional<ApiError> check_model(const std::string& name, const ChatModel& model) {
    if (name == model.alias) return std::nullopt;
    ApiError error = ApiError::invalid(
        "model",
        fmt::format("the model '{:.128}' does not exist; this server has '{}'", name, model.alias));
    error.http_status = 404;
    error.code = "model_not_found";
    return error;
}

std::variant<PreparedCompletion, ApiError> prepare_chat(std::string_view body,
                                                        const ChatModel& model,
                                                        std::uint32_t context) {
    auto parsed = parse_chat_request(body);
    if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
    auto& chat = std::get<ChatRequest>(parsed);
    if (auto error = check_options(chat, model)) return *std::move(error);
    if (auto error = check_tools(chat, model)) return *std::move(error);
    const auto tokens = chat_tokens(chat, model, context);
    if (const auto* error = std::get_if<ApiError>(&tokens)) return *error;
    const auto& prompt = std::get<Tokens>(tokens);
    if (prompt.empty()) return ApiError::invalid("messages", "messages: the prompt is empty");
    PreparedCompletion prepared;
    prepared.options = chat;
    if (!chat.tools_json.empty()) prepared.tool_calls = model.tool_calls;
    prepared.tools_json = std::move(chat.tools_json);
    prepared.allows_parallel_calls = chat.allows_parallel_calls;
    if (auto error = add_prompt(prompt, "", context, *model.tokenizer, prepared))
        return *std::move(error);
    return prepared;
}

std::variant<PreparedCompletion, ApiError> prepare_text(std::string_view body,
                                                        const ChatModel& model,
                                                        std::uint32_t context) {
    auto parsed = parse_text_request(body);
    if (auto* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
    const auto& request = std::get<TextRequest>(parsed);
    if (auto error = check_options(request, model)) return *std::move(error);
    PreparedCompletion prepared;
    prepared.options = request;
    for (const TextPrompt& prompt : request.prompts) {
        const auto tokens = text_tokens(prompt, model, context);
        if (const auto* error = std::get_if<ApiError>(&tokens)) return *error;
        const std::string echo = request.echoes ? echo_of(prompt, *model.tokenizer) : "";
        if (auto error =
                add_prompt(std::get<Tokens>(tokens), echo, context, *model.tokenizer, prepared))
            return *std::move(error);
    }
    return prepared;
}

ApiError prompt_too_long(std::uint64_t prompt_tokens, std::uint32_t context,
                         std::string_view bound) {
    ApiError error = ApiError::invalid(
        "messages",
        fmt::format("This model's maximum context length is {} tokens. However, your messages "
                    "resulted in {}{} tokens. Please reduce the length of the messages.",
                    context, bound, prompt_tokens));
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
