// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as the body of a chat request. What is accepted must hold the ranges that
// the rest of the API relies on; what is refused must be a well-formed 4xx answer.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <variant>

#include "api/json_document.hpp"
#include "api/openai_request.hpp"
#include "base/check.hpp"

namespace artel::api {
namespace {

void check_request(const ChatRequest& request) {
    const Sampling& sampling = request.sampling;
    ARTEL_CHECK(!request.model.empty(), "no model");
    ARTEL_CHECK(!request.tokens_max || *request.tokens_max > 0, "tokens_max 0");
    ARTEL_CHECK(sampling.temperature >= 0 && sampling.temperature <= 2, "temperature");
    ARTEL_CHECK(sampling.top_p > 0 && sampling.top_p <= 1, "top_p");
    ARTEL_CHECK(sampling.min_p >= 0 && sampling.min_p <= 1, "min_p");
    ARTEL_CHECK(sampling.repetition_penalty > 0, "repetition_penalty");
    ARTEL_CHECK(sampling.logit_bias.size() <= kLogitBiasMax, "logit_bias");
    ARTEL_CHECK(request.stops.size() <= kStopStringsMax, "stops");
    ARTEL_CHECK(request.top_logprobs <= kChatTopLogprobsMax, "top_logprobs");
    for (const auto& stop : request.stops)
        ARTEL_CHECK(!stop.empty() && stop.size() <= kStopBytesMax, "stop string");
    const auto messages = parse_json(request.messages_json);
    ARTEL_CHECK(messages.ok() && messages->is_array() && !messages->empty(), "messages");
    for (const auto& message : *messages)
        ARTEL_CHECK(message.contains("role") && message.contains("content"), "message");
}

}  // namespace
}  // namespace artel::api

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace artel::api;
    const auto parsed =
        parse_chat_request(std::string_view(reinterpret_cast<const char*>(data), size));
    if (const auto* request = std::get_if<ChatRequest>(&parsed)) {
        check_request(*request);
        return 0;
    }
    const auto& error = std::get<ApiError>(parsed);
    ARTEL_CHECK(error.http_status == 400 && !error.message.empty(), "not a proper refusal");
    ARTEL_CHECK(parse_json(error.to_json()).ok(), "the refusal is not JSON");
    return 0;
}
