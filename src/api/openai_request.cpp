// SPDX-License-Identifier: Apache-2.0
#include "api/openai_request.hpp"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "api/chat_messages.hpp"
#include "api/chat_tools.hpp"
#include "api/json_document.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kTokensMax = std::numeric_limits<std::uint32_t>::max();

void read_limits(FieldReader& fields, std::optional<std::uint32_t>& tokens_max) {
    fields.read_integer("max_tokens", 1, kTokensMax, tokens_max);
    fields.read_integer("max_completion_tokens", 1, kTokensMax, tokens_max);  // the newer name wins
}

void read_logprobs(FieldReader& fields, ChatRequest& request) {
    fields.read_bool("logprobs", request.wants_logprobs);
    fields.read_integer("top_logprobs", 0, kChatTopLogprobsMax, request.top_logprobs);
    if (request.top_logprobs > 0 && !request.wants_logprobs)
        fields.fail("top_logprobs", "needs \"logprobs\": true");
}

void refuse_unbuilt_in_chats(FieldReader& fields) {
    refuse_unbuilt_everywhere(fields);
    refuse_unbuilt(fields, {{"functions"},
                            {"function_call", {"none", "auto"}},
                            {"audio"},
                            {"prediction"},
                            {"web_search_options"},
                            {"reasoning_effort", {"medium"}},
                            {"verbosity", {"medium"}}});
    const Json* modalities = fields.find("modalities");
    if (modalities != nullptr && *modalities != Json::array({"text"}))
        fields.fail_unsupported("modalities", "only [\"text\"] is supported");
    const Json* metadata = fields.find("metadata");
    if (metadata != nullptr && !metadata->is_object()) fields.fail("metadata", "must be an object");
}

void read_messages(FieldReader& fields, std::string& target) {
    const Json* messages = fields.find("messages");
    if (messages == nullptr) return fields.fail("messages", "must be a list of messages");
    auto made = to_template_messages(*messages);
    if (auto* error = std::get_if<ApiError>(&made)) return fields.fail(std::move(*error));
    target = to_text(std::get<Json>(made));
}

}  // namespace

std::variant<ChatRequest, ApiError> parse_chat_request(std::string_view body) {
    const auto document = parse_object(body);
    if (!document.ok()) return ApiError::invalid("", std::string(document.status().message()));
    FieldReader fields(*document, "");
    ChatRequest request;
    read_generation_options(fields, request);
    read_limits(fields, request.tokens_max);
    read_logprobs(fields, request);
    refuse_unbuilt_in_chats(fields);
    fields.read_bool("parallel_tool_calls", request.allows_parallel_calls);
    read_tools(fields, request.tools_json);
    read_messages(fields, request.messages_json);
    if (auto error = fields.take_error()) return *std::move(error);
    return request;
}

}  // namespace artel::api
