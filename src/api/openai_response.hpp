// SPDX-License-Identifier: Apache-2.0
// Typed answers -> the JSON of the OpenAI API, and the framing of server-sent events. Pure; the
// only other places that write JSON are api_error, token_routes and status_json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.hpp"
#include "text/tool_calls.hpp"

namespace artel::api {

enum class CompletionKind : std::uint8_t { Chat, Text };

struct CompletionHead {
    CompletionKind kind = CompletionKind::Chat;
    std::string id;  // "chatcmpl-..." or "cmpl-..."
    std::int64_t created = 0;
    std::string model;
};

struct Usage {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
};

struct AnswerLogprob {
    std::string bytes;  // of the token, maybe part of a character
    float logprob = 0;
    std::size_t text_offset = 0;     // in characters of the whole text; text completions only
    std::vector<AnswerLogprob> top;  // most likely first; empty inside `top`
};

struct AnswerToolCall {
    std::uint32_t index = 0;  // among the calls of its choice
    std::string id;           // unique, never empty
    text::ToolCall call;
};

/// The parts of a choice: a delta of a stream or the whole of it.
struct AnswerPart {
    std::uint32_t index = 0;  // of the choice
    bool has_role = false;
    std::optional<std::string> content;
    std::optional<std::vector<AnswerLogprob>> logprobs;
    std::vector<AnswerToolCall> tool_calls;
    std::string finish_reason;  // null when empty
};

/// `has_usage_field`: the client asked for usage, so each chunk but the last says "usage":null.
std::string to_chunk_json(const CompletionHead& head, const AnswerPart& part, bool has_usage_field);
/// The chunk after the last choice: no choices, only usage.
std::string to_usage_chunk_json(const CompletionHead& head, const Usage& usage);
std::string to_completion_json(const CompletionHead& head, const std::vector<AnswerPart>& choices,
                               const Usage& usage);

struct ModelCard {
    std::string id;
    std::int64_t created = 0;
    std::uint32_t context = 0;  // tokens that a request may have; 0: not known yet
};
std::string to_model_json(const ModelCard& card);
std::string to_model_list_json(const ModelCard& card);

/// "data: JSON\n\n". JSON on one line needs no more framing than that.
std::string to_sse_event(std::string_view json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
/// An error inside a stream that has begun; nothing follows it, not even [DONE].
std::string to_sse_error(const ApiError& error);
HttpResponse sse_head();

}  // namespace artel::api
