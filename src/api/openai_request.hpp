// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/chat/completions -> ChatRequest: every field checked for type and range.
// Unknown fields are ignored; fields of the OpenAI API that artel can't honour yet are refused when
// they ask for something. Pure: no template, no tokens, no server state. Must never crash (fuzzed).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/api_error.hpp"

namespace artel::api {

inline constexpr std::size_t kStopStringsMax = 16;
inline constexpr std::size_t kStopBytesMax = 1024;  // of one stop string
inline constexpr std::size_t kLogitBiasMax = 1024;
inline constexpr std::uint32_t kChatTopLogprobsMax = 20;

struct ChatSampling {
    float temperature = 1.0F;
    float top_p = 1.0F;
    std::uint32_t top_k = 0;
    float min_p = 0.0F;
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
    float repetition_penalty = 1.0F;
    std::vector<std::pair<std::uint32_t, float>> logit_bias;
    std::optional<std::uint64_t> seed;
};

struct ChatRequest {
    std::string model;
    /// A JSON list for the template: role, content (one string), name, tool_calls...
    std::string messages_json;
    std::optional<std::uint32_t> tokens_max;
    ChatSampling sampling;
    std::vector<std::string> stops;
    bool is_stream = false;
    bool includes_usage = false;
    bool wants_logprobs = false;
    std::uint32_t top_logprobs = 0;
    bool ignores_end = false;  // "ignore_eos": only tokens_max and stops end the answer
};

std::variant<ChatRequest, ApiError> parse_chat_request(std::string_view body);

}  // namespace artel::api
