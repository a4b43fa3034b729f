// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/completions -> TextRequest, with the same strictness as openai_request.
// Pure: no tokens, no server state. Must never crash (fuzzed).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/api_error.hpp"
#include "api/generation_options.hpp"

namespace artel::api {

inline constexpr std::uint32_t kTextTopLogprobsMax = 5;
inline constexpr std::size_t kPromptsMax = 128;  // prompts times answers of each

/// As text, or as token ids that the server takes as they are.
using TextPrompt = std::variant<std::string, std::vector<std::uint32_t>>;

struct TextRequest : GenerationOptions {
    std::vector<TextPrompt> prompts;  // at least one
    bool echoes = false;              // the answer begins with the prompt
};

std::variant<TextRequest, ApiError> parse_text_request(std::string_view body);

}  // namespace artel::api
