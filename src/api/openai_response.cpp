// SPDX-License-Identifier: Apache-2.0
#include "api/openai_response.hpp"

#include <nlohmann/json.hpp>

#include "api/json_document.hpp"

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

Json logprobs_or_null(const AnswerPart& part) {
    if (!part.logprobs) return nullptr;
    Json content = Json::array();
    for (const AnswerLogprob& entry : *part.logprobs) {
        Json top = Json::array();
        for (const AnswerLogprob& other : entry.top) top.push_back(to_json(other));
        content.push_back(to_json(entry));
        content.back()["top_logprobs"] = std::move(top);
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json reason_or_null(const AnswerPart& part) {
    return part.finish_reason.empty() ? Json() : Json(part.finish_reason);
}

Json start_of(const CompletionHead& head, std::string_view object) {
    return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
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
    Json delta = Json::object();
    if (part.has_role) delta["role"] = "assistant";
    if (part.content) delta["content"] = *part.content;
    Json chunk = start_of(head, "chat.completion.chunk");
    chunk["choices"] = Json::array({{{"index", 0},
                                     {"delta", std::move(delta)},
                                     {"logprobs", logprobs_or_null(part)},
                                     {"finish_reason", reason_or_null(part)}}});
    if (has_usage_field) chunk["usage"] = nullptr;
    return to_text(chunk);
}

std::string to_usage_chunk_json(const CompletionHead& head, const Usage& usage) {
    Json chunk = start_of(head, "chat.completion.chunk");
    chunk["choices"] = Json::array();
    chunk["usage"] = to_json(usage);
    return to_text(chunk);
}

std::string to_completion_json(const CompletionHead& head, const AnswerPart& part,
                               const Usage& usage) {
    Json completion = start_of(head, "chat.completion");
    completion["choices"] = Json::array(
        {{{"index", 0},
          {"message",
           {{"role", "assistant"}, {"content", part.content.value_or("")}, {"refusal", nullptr}}},
          {"logprobs", logprobs_or_null(part)},
          {"finish_reason", reason_or_null(part)}}});
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
