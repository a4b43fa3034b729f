// SPDX-License-Identifier: Apache-2.0
#include "api/openai_response.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/json_document.hpp"
#include "text/utf8.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Usage& usage) {
    return {{"prompt_tokens", usage.prompt_tokens},
            {"completion_tokens", usage.completion_tokens},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json to_json(const AnswerLogprob& entry) {
    Json bytes = Json::array();
    for (const char c : entry.bytes) bytes.push_back(static_cast<unsigned char>(c));
    return {{"token", entry.bytes}, {"logprob", entry.logprob}, {"bytes", std::move(bytes)}};
}

Json chat_logprobs(const std::vector<AnswerLogprob>& entries) {
    Json content = Json::array();
    for (const AnswerLogprob& entry : entries) {
        Json top = Json::array();
        for (const AnswerLogprob& other : entry.top) top.push_back(to_json(other));
        content.push_back(to_json(entry));
        content.back()["top_logprobs"] = std::move(top);
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
}

/// Text completions name tokens by their text; what is no text is spelled as OpenAI does,
/// "bytes:\xe2\x80".
std::string token_name(const std::string& bytes) {
    if (text::valid_utf8_bytes(bytes) == bytes.size()) return bytes;
    std::string name = "bytes:";
    for (const char c : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    return name;
}

Json text_logprobs(const std::vector<AnswerLogprob>& entries) {
    Json tokens = Json::array(), logprobs = Json::array(), tops = Json::array(),
         offsets = Json::array();
    for (const AnswerLogprob& entry : entries) {
        tokens.push_back(token_name(entry.bytes));
        logprobs.push_back(entry.logprob);
        offsets.push_back(entry.text_offset);
        Json top = Json::object();
        for (const AnswerLogprob& other : entry.top)
            top.emplace(token_name(other.bytes), other.logprob);  // of equal names the likelier
        tops.push_back(std::move(top));
    }
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(logprobs)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
}

Json logprobs_or_null(const CompletionHead& head, const AnswerPart& part) {
    if (!part.logprobs) return nullptr;
    return head.kind == CompletionKind::Chat ? chat_logprobs(*part.logprobs)
                                             : text_logprobs(*part.logprobs);
}

Json reason_or_null(const AnswerPart& part) {
    return part.finish_reason.empty() ? Json() : Json(part.finish_reason);
}

Json start_of(const CompletionHead& head, bool is_chunk) {
    const char* object = head.kind == CompletionKind::Text ? "text_completion"
                         : is_chunk                        ? "chat.completion.chunk"
                                                           : "chat.completion";
    return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

Json tool_calls_json(const AnswerPart& part, bool is_delta) {
    Json calls = Json::array();
    for (const AnswerToolCall& made : part.tool_calls) {
        Json call = Json::object();
        if (is_delta) call["index"] = made.index;
        call["id"] = made.id;
        call["type"] = "function";
        call["function"] = {{"name", made.call.name}, {"arguments", made.call.arguments_json}};
        calls.push_back(std::move(call));
    }
    return calls;
}

Json text_choice(const CompletionHead& head, const AnswerPart& part) {
    return {{"index", part.index},
            {"text", part.content.value_or("")},
            {"logprobs", logprobs_or_null(head, part)},
            {"finish_reason", reason_or_null(part)}};
}

Json chat_delta(const CompletionHead& head, const AnswerPart& part) {
    Json delta = Json::object();
    if (part.has_role) delta["role"] = "assistant";
    if (part.content) delta["content"] = *part.content;
    if (!part.tool_calls.empty()) delta["tool_calls"] = tool_calls_json(part, /*is_delta=*/true);
    return {{"index", part.index},
            {"delta", std::move(delta)},
            {"logprobs", logprobs_or_null(head, part)},
            {"finish_reason", reason_or_null(part)}};
}

Json chat_choice(const CompletionHead& head, const AnswerPart& part) {
    const std::string content = part.content.value_or("");
    Json message{{"role", "assistant"}, {"content", content}, {"refusal", nullptr}};
    if (!part.tool_calls.empty()) {
        if (content.empty()) message["content"] = nullptr;
        message["tool_calls"] = tool_calls_json(part, /*is_delta=*/false);
    }
    return {{"index", part.index},
            {"message", std::move(message)},
            {"logprobs", logprobs_or_null(head, part)},
            {"finish_reason", reason_or_null(part)}};
}

Json to_json(const ModelCard& card) {
    Json json{
        {"id", card.id}, {"object", "model"}, {"created", card.created}, {"owned_by", "artel"}};
    if (card.context > 0) json["context_length"] = card.context;
    return json;
}

}  // namespace

std::string to_chunk_json(const CompletionHead& head, const AnswerPart& part,
                          bool has_usage_field) {
    Json chunk = start_of(head, /*is_chunk=*/true);
    chunk["choices"] = Json::array(
        {head.kind == CompletionKind::Chat ? chat_delta(head, part) : text_choice(head, part)});
    if (has_usage_field) chunk["usage"] = nullptr;
    return to_text(chunk);
}

std::string to_usage_chunk_json(const CompletionHead& head, const Usage& usage) {
    Json chunk = start_of(head, /*is_chunk=*/true);
    chunk["choices"] = Json::array();
    chunk["usage"] = to_json(usage);
    return to_text(chunk);
}

std::string to_completion_json(const CompletionHead& head, const std::vector<AnswerPart>& choices,
                               const Usage& usage) {
    Json completion = start_of(head, /*is_chunk=*/false);
    Json list = Json::array();
    for (const AnswerPart& choice : choices)
        list.push_back(head.kind == CompletionKind::Chat ? chat_choice(head, choice)
                                                         : text_choice(head, choice));
    completion["choices"] = std::move(list);
    completion["usage"] = to_json(usage);
    return to_text(completion);
}

std::string to_model_json(const ModelCard& card) {
    return to_text(to_json(card));
}

std::string to_model_list_json(const ModelCard& card) {
    return to_text({{"object", "list"}, {"data", Json::array({to_json(card)})}});
}

std::string to_sse_event(std::string_view json) {
    std::string event = "data: ";
    event += json;
    event += "\n\n";
    return event;
}

std::string to_sse_error(const ApiError& error) {
    return to_sse_event(to_text(
        {{"error", {{"message", error.message}, {"type", error.type}, {"code", error.code}}}}));
}

HttpResponse sse_head() {
    return {.content_type = "text/event-stream; charset=utf-8",
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .body = ""};
}

}  // namespace artel::api
