// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/chat/completions -> ChatRequest: every field checked for type and range.
// Unknown fields are ignored; fields of the OpenAI API that artel can't honour yet are refused when
// they ask for something. Pure: no template, no tokens, no server state. Must never crash (fuzzed).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "api/api_error.hpp"
#include "api/generation_options.hpp"

namespace artel::api {

inline constexpr std::uint32_t kChatTopLogprobsMax = 20;

struct ChatRequest : GenerationOptions {
    /// A JSON list for the template: role, content (one string), name, tool_calls...
    std::string messages_json;
    /// A JSON list of the functions that the model may call; empty: none, also by tool_choice.
    std::string tools_json;
    bool allows_parallel_calls = true;
};

std::variant<ChatRequest, ApiError> parse_chat_request(std::string_view body);

}  // namespace artel::api
