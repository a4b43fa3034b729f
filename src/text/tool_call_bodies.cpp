// SPDX-License-Identifier: Apache-2.0
// What stands between the markers of tool calls. The form is told by how it begins, so that a
// model which writes a neighbouring family's form is understood too.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "text/tool_calls.hpp"

namespace artel::text {
namespace {

using Json = nlohmann::ordered_json;
using Calls = std::vector<ToolCall>;

constexpr int kDepthMax = 64;

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \n\r\t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \n\r\t") - first + 1);
}

/// Nothing if it is not JSON, or nested deeper than anybody needs.
std::optional<Json> parse(std::string_view text) {
    int depth = 0, deepest = 0;  // brackets in strings count too, which errs on the safe side
    for (const char c : text) {
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        deepest = std::max(deepest, depth);
    }
    if (deepest > kDepthMax) return std::nullopt;
    Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return std::nullopt;
    return json;
}

std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Takes `text` up to `marker` off its front, and the marker too; nothing if it is not there.
std::optional<std::string_view> cut(std::string_view& text, std::string_view marker) {
    const std::size_t at = text.find(marker);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = text.substr(0, at);
    text.remove_prefix(at + marker.size());
    return before;
}

std::optional<ToolCall> from_arguments(std::string_view name, std::string_view arguments) {
    const auto json = parse(arguments);
    if (!json || !json->is_object() || trim(name).empty()) return std::nullopt;
    return ToolCall{std::string(trim(name)), dump(*json)};
}

const Json* first_of(const Json& object, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (const auto found = object.find(name); found != object.end()) return &*found;
    return nullptr;
}

/// {"name": "f", "arguments": {...}} with the names that families give the two.
std::optional<ToolCall> from_object(const Json& object) {
    if (!object.is_object()) return std::nullopt;
    if (const auto inner = object.find("function"); inner != object.end() && inner->is_object())
        return from_object(*inner);
    const Json* name = first_of(object, {"name", "tool_name"});
    const Json* arguments = first_of(object, {"arguments", "parameters"});
    if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty())
        return std::nullopt;
    if (arguments == nullptr) return ToolCall{name->get<std::string>(), "{}"};
    if (arguments->is_string())
        return from_arguments(name->get<std::string>(), arguments->get<std::string>());
    if (!arguments->is_object()) return std::nullopt;
    return ToolCall{name->get<std::string>(), dump(*arguments)};
}

/// One object, or a list of them.
Calls read_json(std::string_view body) {
    const auto json = parse(body);
    if (!json) return {};
    Calls calls;
    const Json list = json->is_array() ? *json : Json::array({*json});
    for (const Json& object : list) {
        auto call = from_object(object);
        if (!call) return {};
        calls.push_back(*std::move(call));
    }
    return calls;
}

/// The type that the request's schema gives a parameter, "" where it says none.
std::string parameter_type(std::string_view tools_json, std::string_view function,
                           std::string_view parameter) {
    const auto tools = parse(tools_json);
    if (!tools || !tools->is_array()) return {};
    for (const Json& tool : *tools) {
        const Json described = tool.value("function", Json::object());
        if (described.value("name", "") != function) continue;
        const Json schema = described.value("parameters", Json::object());
        const Json properties = schema.value("properties", Json::object());
        const auto found = properties.find(parameter);
        if (found == properties.end() || !found->is_object()) return {};
        const auto type = found->find("type");
        return type != found->end() && type->is_string() ? type->get<std::string>() : "";
    }
    return {};
}

/// Text between tags: JSON where it can be, unless the schema wants a string.
Json untyped_value(std::string_view text, const std::string& type) {
    if (type != "string")
        if (auto json = parse(trim(text))) return *std::move(json);
    // The template puts a line break after the opening tag and before the closing one.
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    return std::string(text);
}

struct Tags {
    std::string_view function_open, function_name_end, function_close;
    std::string_view parameter_open, parameter_name_end, parameter_close;
};
constexpr Tags kFunctionTags{"<function=", ">", "</function>", "<parameter=", ">", "</parameter>"};
constexpr Tags kInvokeTags{"<invoke name=\"",    "\">", "</invoke>",
                           "<parameter name=\"", "\">", "</parameter>"};

/// <function=f><parameter=a>1</parameter></function>, any number of them.
Calls read_tags(std::string_view body, const Tags& tags, std::string_view tools_json) {
    Calls calls;
    while (cut(body, tags.function_open)) {
        const auto name = cut(body, tags.function_name_end);
        auto inside = cut(body, tags.function_close);
        if (!name || !inside || trim(*name).empty()) return {};
        Json arguments = Json::object();
        while (cut(*inside, tags.parameter_open)) {
            const auto key = cut(*inside, tags.parameter_name_end);
            const auto value = cut(*inside, tags.parameter_close);
            if (!key || !value) return {};
            arguments[std::string(*key)] =
                untyped_value(*value, parameter_type(tools_json, *name, *key));
        }
        calls.push_back({std::string(trim(*name)), dump(arguments)});
    }
    return calls;
}

/// f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>...
Calls read_keys_and_values(std::string_view body, std::string_view tools_json) {
    const std::string_view name = trim(body.substr(0, body.find("<arg_key>")));
    Json arguments = Json::object();
    while (cut(body, "<arg_key>")) {
        const auto key = cut(body, "</arg_key>");
        const auto begins = cut(body, "<arg_value>");
        const auto value = cut(body, "</arg_value>");
        if (!key || !begins || !value) return {};
        arguments[std::string(*key)] =
            untyped_value(*value, parameter_type(tools_json, name, *key));
    }
    const bool is_name = !name.empty() && name.find_first_of(" \n<{[\"") == std::string_view::npos;
    if (!is_name) return {};
    return {{std::string(name), dump(arguments)}};
}

/// f[CALL_ID]1[ARGS]{...}, also without the id or the marker.
Calls read_name_and_json(std::string_view body) {
    const std::size_t begin = body.find('{');
    if (begin == std::string_view::npos) return {};
    std::string_view name = body.substr(0, begin);
    name = name.substr(0, std::min(name.find("[CALL_ID]"), name.find("[ARGS]")));
    if (trim(name).find_first_of(" \n[\"") != std::string_view::npos) return {};
    auto call = from_arguments(name, body.substr(begin));
    return call ? Calls{*std::move(call)} : Calls{};
}

/// functions.f:0<|tool_call_argument_begin|>{...}
Calls read_kimi(std::string_view body) {
    Calls calls;
    while (cut(body, "<|tool_call_begin|>")) {
        const auto id = cut(body, "<|tool_call_argument_begin|>");
        const auto arguments = cut(body, "<|tool_call_end|>");
        if (!id || !arguments) return {};
        std::string_view name = trim(*id);
        if (name.starts_with("functions.")) name.remove_prefix(10);
        auto call = from_arguments(name.substr(0, name.rfind(':')), *arguments);
        if (!call) return {};
        calls.push_back(*std::move(call));
    }
    return calls;
}

/// Newer: name, separator, JSON. Older: "function", separator, name, JSON in a code fence.
Calls read_deepseek(std::string_view body) {
    Calls calls;
    while (cut(body, "<｜tool▁call▁begin｜>")) {
        auto name = cut(body, "<｜tool▁sep｜>");
        auto arguments = cut(body, "<｜tool▁call▁end｜>");
        if (!name || !arguments) return {};
        if (arguments->find("```json") != std::string_view::npos) {
            name = cut(*arguments, "```json");
            arguments = arguments->substr(0, arguments->rfind("```"));
        }
        auto call = from_arguments(*name, *arguments);
        if (!call) return {};
        calls.push_back(*std::move(call));
    }
    return calls;
}

}  // namespace

std::vector<ToolCall> parse_tool_calls(std::string_view body, std::string_view tools_json) {
    body = trim(body);
    if (body.empty()) return {};
    if (body.front() == '{' || body.front() == '[') return read_json(body);
    if (body.starts_with(kFunctionTags.function_open))
        return read_tags(body, kFunctionTags, tools_json);
    if (body.starts_with(kInvokeTags.function_open))
        return read_tags(body, kInvokeTags, tools_json);
    if (body.starts_with("<|tool_call_begin|>")) return read_kimi(body);
    if (body.starts_with("<｜tool▁call▁begin｜>")) return read_deepseek(body);
    if (body.find("<arg_key>") != std::string_view::npos)
        return read_keys_and_values(body, tools_json);
    return read_name_and_json(body);
}

}  // namespace artel::text
