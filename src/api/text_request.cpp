// SPDX-License-Identifier: Apache-2.0
#include "api/text_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/json_document.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kUnsignedMax = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kTokensDefault = 16;  // OpenAI's, for this path only
constexpr std::string_view kPromptForms =
    "must be a string, a list of strings, a list of token ids or a list of such lists";

bool is_token_list(const Json& value) {
    return value.is_array() && !value.empty() &&
           std::all_of(value.begin(), value.end(), [](const Json& token) {
               return token.is_number_unsigned() && token.get<std::uint64_t>() <= kUnsignedMax;
           });
}

bool add_prompt(const Json& value, std::vector<TextPrompt>& prompts) {
    if (value.is_string())
        prompts.emplace_back(value.get<std::string>());
    else if (is_token_list(value))
        prompts.emplace_back(value.get<std::vector<std::uint32_t>>());
    else
        return false;
    return true;
}

void read_prompts(FieldReader& fields, TextRequest& request) {
    const Json* prompt = fields.find("prompt");
    if (prompt == nullptr) return fields.fail("prompt", kPromptForms);
    if (add_prompt(*prompt, request.prompts)) return;
    if (!prompt->is_array() || prompt->empty()) return fields.fail("prompt", kPromptForms);
    if (prompt->size() * request.choices > kPromptsMax)
        return fields.fail("prompt",
                           fmt::format("prompts times \"n\" must be at most {}", kPromptsMax));
    for (const Json& one : *prompt) {
        const bool is_like_first = one.type() == prompt->front().type();
        if (!is_like_first || !add_prompt(one, request.prompts))
            return fields.fail("prompt", kPromptForms);
    }
}

void read_logprobs(FieldReader& fields, TextRequest& request) {
    std::optional<std::uint32_t> count;
    fields.read_integer("logprobs", 0, kTextTopLogprobsMax, count);
    request.wants_logprobs = count.has_value();
    request.top_logprobs = count.value_or(0);
    if (request.wants_logprobs && request.echoes)
        fields.fail_unsupported("logprobs", "not supported together with \"echo\" yet");
}

void refuse_unbuilt_in_texts(FieldReader& fields, const TextRequest& request) {
    refuse_unbuilt_everywhere(fields);
    refuse_unbuilt(fields, {{"suffix", {""}}});
    std::uint32_t best_of = request.choices;
    fields.read_integer("best_of", 0, 20, best_of);
    if (best_of != request.choices && best_of > 1)
        fields.fail_unsupported("best_of", "only the value of \"n\" is supported");
}

}  // namespace

std::variant<TextRequest, ApiError> parse_text_request(std::string_view body) {
    const auto document = parse_object(body);
    if (!document.ok()) return ApiError::invalid("", std::string(document.status().message()));
    FieldReader fields(*document, "");
    TextRequest request;
    read_generation_options(fields, request);
    fields.read_bool("echo", request.echoes);
    request.tokens_max = kTokensDefault;
    fields.read_integer("max_tokens", 1, kUnsignedMax, request.tokens_max);
    read_logprobs(fields, request);
    refuse_unbuilt_in_texts(fields, request);
    read_prompts(fields, request);
    if (auto error = fields.take_error()) return *std::move(error);
    return request;
}

}  // namespace artel::api
