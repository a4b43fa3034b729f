// SPDX-License-Identifier: Apache-2.0
#include "api/generation_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kTopKMax = std::numeric_limits<std::uint32_t>::max();
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

void read_sampling(FieldReader& fields, Sampling& sampling) {
    fields.read_number("temperature", 0, 2, sampling.temperature);
    fields.read_number("top_p", 0, 1, sampling.top_p);
    if (sampling.top_p < kSmallestTopP) sampling.top_p = kSmallestTopP;
    fields.read_integer("top_k", 0, kTopKMax, sampling.top_k);
    fields.read_number("min_p", 0, 1, sampling.min_p);
    fields.read_number("presence_penalty", -2, 2, sampling.presence_penalty);
    fields.read_number("frequency_penalty", -2, 2, sampling.frequency_penalty);
    fields.read_number("repetition_penalty", 0.01F, 100, sampling.repetition_penalty);
    fields.read_integer("seed", 0, kSeedMax, sampling.seed);
    read_logit_bias(fields, sampling.logit_bias);
}

void read_stream(FieldReader& fields, GenerationOptions& options) {
    fields.read_bool("stream", options.is_stream);
    const Json* object = fields.find("stream_options");
    if (object == nullptr) return;
    if (!object->is_object()) return fields.fail("stream_options", "must be an object");
    FieldReader reader(*object, "stream_options.");
    reader.read_bool("include_usage", options.includes_usage);
    if (auto error = reader.take_error()) return fields.fail(*std::move(error));
    if (!options.is_stream) fields.fail("stream_options", "is only allowed with \"stream\": true");
}

bool asks_for_nothing(const Json& value, const UnbuiltField& field) {
    if (value.is_string()) {
        const auto& text = value.get_ref<const std::string&>();
        return std::any_of(field.harmless_texts.begin(), field.harmless_texts.end(),
                           [&](const char* harmless) { return text == harmless; });
    }
    if (value.is_boolean()) return !value.get<bool>();
    return (value.is_array() || value.is_object()) && value.empty();
}

}  // namespace

void read_generation_options(FieldReader& fields, GenerationOptions& options) {
    fields.read_string("model", options.model);
    if (options.model.empty()) fields.fail("model", "must name a model; GET /v1/models lists them");
    read_sampling(fields, options.sampling);
    read_stops(fields, options.stops);
    read_stream(fields, options);
    fields.read_bool("ignore_eos", options.ignores_end);
    fields.read_integer("n", 1, 128, options.choices);  // OpenAI's range; what is served is less
    if (options.choices > kChoicesMax)
        fields.fail_unsupported("n", fmt::format("at most {} answers", kChoicesMax));
    std::string unused;
    fields.read_string("user", unused);
}

void refuse_unbuilt(FieldReader& fields, std::initializer_list<UnbuiltField> unbuilt) {
    for (const UnbuiltField& field : unbuilt) {
        const Json* value = fields.find(field.name);
        if (value != nullptr && !asks_for_nothing(*value, field))
            fields.fail_unsupported(field.name, "not supported by this server");
    }
}

void refuse_unbuilt_everywhere(FieldReader& fields) {
    // The last ones are other servers' ways to constrain an answer: to ignore them would be to
    // give an answer that the client believes to be constrained.
    refuse_unbuilt(fields, {{"store"},
                            {"service_tier", {"auto", "default"}},
                            {"grammar", {""}},
                            {"json_schema"},
                            {"guided_json", {""}},
                            {"guided_regex", {""}},
                            {"guided_choice"},
                            {"guided_grammar", {""}},
                            {"structured_outputs"}});
    const Json* format = fields.find("response_format");
    if (format == nullptr) return;
    if (!format->is_object()) return fields.fail("response_format", "must be an object");
    const auto type = format->find("type");
    if (type == format->end() || !type->is_string())
        return fields.fail("response_format", "needs a string \"type\"");
    if (*type == "json_object" || *type == "json_schema")
        return fields.fail_unsupported("response_format",
                                       "only {\"type\":\"text\"} is supported yet");
    if (*type != "text")
        fields.fail("response_format", "\"type\" must be text, json_object or json_schema");
}

}  // namespace artel::api
