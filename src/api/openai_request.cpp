// SPDX-License-Identifier: Apache-2.0
#include "api/openai_request.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/chat_messages.hpp"
#include "api/field_reader.hpp"
#include "api/json_document.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kTokensMax = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kSeedMax = std::numeric_limits<std::int64_t>::max();
constexpr float kSmallestTopP = 1e-6F;  // the most likely token alone

void read_stops(FieldReader& fields, std::vector<std::string>& target) {
    const Json* stop = fields.find("stop");
    if (stop == nullptr) return;
    if (stop->is_string())
        target = {stop->get<std::string>()};
    else if (stop->is_array() && stop->size() <= kStopStringsMax)
        for (const Json& one : *stop) {
            if (!one.is_string()) return fields.fail("stop", "must be a string or a list of them");
            target.push_back(one.get<std::string>());
        }
    else
        return fields.fail(
            "stop", fmt::format("must be a string or a list of up to {} of them", kStopStringsMax));
    for (const std::string& one : target)
        if (one.empty() || one.size() > kStopBytesMax)
            return fields.fail("stop", fmt::format("each must have 1 to {} bytes", kStopBytesMax));
}

void read_logit_bias(FieldReader& fields, std::vector<std::pair<std::uint32_t, float>>& target) {
    const Json* bias = fields.find("logit_bias");
    if (bias == nullptr) return;
    if (!bias->is_object() || bias->size() > kLogitBiasMax)
        return fields.fail("logit_bias",
                           fmt::format("must be an object of up to {} tokens", kLogitBiasMax));
    for (const auto& [name, value] : bias->items()) {
        std::uint32_t token = 0;
        const char* end = name.data() + name.size();
        const auto parsed = std::from_chars(name.data(), end, token);
        if (parsed.ec != std::errc() || parsed.ptr != end)
            return fields.fail("logit_bias", "keys must be token ids");
        const double number = value.is_number() ? value.get<double>() : 1e9;
        if (!(number >= -100 && number <= 100))
            return fields.fail("logit_bias", "values must be numbers from -100 to 100");
        target.emplace_back(token, static_cast<float>(number));
    }
}

void read_sampling(FieldReader& fields, ChatSampling& sampling) {
    fields.read_number("temperature", 0, 2, sampling.temperature);
    fields.read_number("top_p", 0, 1, sampling.top_p);
    if (sampling.top_p < kSmallestTopP) sampling.top_p = kSmallestTopP;
    fields.read_integer("top_k", 0, kTokensMax, sampling.top_k);
    fields.read_number("min_p", 0, 1, sampling.min_p);
    fields.read_number("presence_penalty", -2, 2, sampling.presence_penalty);
    fields.read_number("frequency_penalty", -2, 2, sampling.frequency_penalty);
    fields.read_number("repetition_penalty", 0.01F, 100, sampling.repetition_penalty);
    fields.read_integer("seed", 0, kSeedMax, sampling.seed);
    read_logit_bias(fields, sampling.logit_bias);
}

void read_limits(FieldReader& fields, std::optional<std::uint32_t>& tokens_max) {
    fields.read_integer("max_tokens", 1, kTokensMax, tokens_max);
    fields.read_integer("max_completion_tokens", 1, kTokensMax, tokens_max);  // the newer name wins
}

void read_stream(FieldReader& fields, ChatRequest& request) {
    fields.read_bool("stream", request.is_stream);
    const Json* options = fields.find("stream_options");
    if (options == nullptr) return;
    if (!options->is_object()) return fields.fail("stream_options", "must be an object");
    FieldReader reader(*options, "stream_options.");
    reader.read_bool("include_usage", request.includes_usage);
    if (auto error = reader.take_error()) fields.fail(*std::move(error));
}

void read_logprobs(FieldReader& fields, ChatRequest& request) {
    fields.read_bool("logprobs", request.wants_logprobs);
    fields.read_integer("top_logprobs", 0, kChatTopLogprobsMax, request.top_logprobs);
    if (request.top_logprobs > 0 && !request.wants_logprobs)
        fields.fail("top_logprobs", "needs \"logprobs\": true");
}

/// Whether a field asks for nothing: {}, [], false or the named default.
bool is_default(const Json& value, std::string_view default_text) {
    if (value.is_string()) return value.get_ref<const std::string&>() == default_text;
    if (value.is_boolean()) return !value.get<bool>();
    return (value.is_array() || value.is_object()) && value.empty();
}

void refuse_unsupported(FieldReader& fields) {
    struct Field {
        const char* name;
        const char* default_text;
    };
    for (const Field& field :
         {Field{"tools", ""}, Field{"functions", ""}, Field{"tool_choice", "none"},
          Field{"function_call", "none"}, Field{"audio", ""}, Field{"prediction", ""},
          Field{"web_search_options", ""}, Field{"grammar", ""}}) {
        const Json* value = fields.find(field.name);
        if (value == nullptr || is_default(*value, field.default_text) || *value == "auto")
            continue;
        fields.fail_unsupported(field.name, "not supported by this server yet");
    }
    std::uint64_t count = 1;
    fields.read_integer("n", 1, 128, count);
    if (count > 1) fields.fail_unsupported("n", "only one choice is supported yet");
    if (const Json* format = fields.find("response_format")) {
        if (!format->is_object()) return fields.fail("response_format", "must be an object");
        if (format->value("type", Json()) != "text")
            fields.fail_unsupported("response_format", "only {\"type\":\"text\"} is supported yet");
    }
    const Json* modalities = fields.find("modalities");
    if (modalities != nullptr && *modalities != Json::array({"text"}))
        fields.fail_unsupported("modalities", "only [\"text\"] is supported");
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
    const auto document = parse_json(body);
    if (!document.ok())
        return ApiError::invalid("", "request body: " + std::string(document.status().message()));
    if (!document->is_object()) return ApiError::invalid("", "request body: must be a JSON object");
    FieldReader fields(*document, "");
    ChatRequest request;
    fields.read_string("model", request.model);
    if (request.model.empty()) fields.fail("model", "must name a model; GET /v1/models lists them");
    read_limits(fields, request.tokens_max);
    read_sampling(fields, request.sampling);
    read_stops(fields, request.stops);
    read_stream(fields, request);
    read_logprobs(fields, request);
    fields.read_bool("ignore_eos", request.ignores_end);
    refuse_unsupported(fields);
    read_messages(fields, request.messages_json);
    if (auto error = fields.take_error()) return *std::move(error);
    return request;
}

}  // namespace artel::api
