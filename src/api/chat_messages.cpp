// SPDX-License-Identifier: Apache-2.0
#include "api/chat_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/field_reader.hpp"
#include "api/json_document.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

/// One text part of a content list, or nothing and an error in `reader`.
std::optional<std::string> read_part(const Json& part, std::string_view name,
                                     FieldReader& message) {
    const auto type = part.is_object() ? part.find("type") : part.end();
    if (!part.is_object() || type == part.end() || !type->is_string()) {
        message.fail(name, "each part must be an object with a \"type\"");
        return std::nullopt;
    }
    const std::string kind = type->get<std::string>();
    if (kind != "text" && kind != "refusal") {
        message.fail_unsupported(
            name, fmt::format("parts of type '{:.32}' are not supported, only text", kind));
        return std::nullopt;
    }
    const auto text = part.find(kind);
    if (text == part.end() || !text->is_string()) {
        message.fail(name, fmt::format("a {} part needs a string \"{}\"", kind, kind));
        return std::nullopt;
    }
    return text->get<std::string>();
}

/// A string as it is; the texts of a list of parts on lines of their own.
void read_content(const Json& content, FieldReader& message, std::string& target) {
    if (content.is_string()) {
        target = content.get<std::string>();
        return;
    }
    if (!content.is_array())
        return message.fail("content", "must be a string or a list of text parts");
    for (const Json& part : content) {
        const auto text = read_part(part, "content", message);
        if (!text) return;
        if (&part != &content.front()) target += '\n';
        target += *text;
    }
}

/// Arguments arrive as a string of JSON; templates expect the object.
std::optional<Json> read_arguments(const Json& function, FieldReader& message) {
    const auto found = function.find("arguments");
    if (found == function.end() || found->is_null()) return Json::object();
    if (found->is_object()) return *found;
    if (found->is_string() && found->get_ref<const std::string&>().empty()) return Json::object();
    if (found->is_string()) {
        auto parsed = parse_json(found->get_ref<const std::string&>());
        if (parsed.ok() && parsed->is_object()) return *std::move(parsed);
    }
    message.fail("tool_calls", "\"arguments\" must be a string that holds a JSON object");
    return std::nullopt;
}

std::optional<Json> read_tool_call(const Json& call, std::size_t number, FieldReader& message) {
    const auto function = call.is_object() ? call.find("function") : call.end();
    if (!call.is_object() || function == call.end() || !function->is_object()) {
        message.fail("tool_calls", "each call needs an object \"function\"");
        return std::nullopt;
    }
    const auto name = function->find("name");
    if (name == function->end() || !name->is_string()) {
        message.fail("tool_calls", "each function needs a string \"name\"");
        return std::nullopt;
    }
    auto arguments = read_arguments(*function, message);
    if (!arguments) return std::nullopt;
    const auto id = call.find("id");
    const bool has_id =
        id != call.end() && id->is_string() && !id->get_ref<const std::string&>().empty();
    return Json{{"id", has_id ? *id : Json(fmt::format("call_{}", number))},
                {"type", "function"},
                {"function", {{"name", *name}, {"arguments", *std::move(arguments)}}}};
}

void read_tool_calls(const Json& calls, FieldReader& message, Json& target) {
    if (!calls.is_array()) return message.fail("tool_calls", "must be a list");
    Json list = Json::array();
    for (const Json& call : calls) {
        auto read = read_tool_call(call, list.size(), message);
        if (!read) return;
        list.push_back(*std::move(read));
    }
    if (!list.empty()) target["tool_calls"] = std::move(list);
}

Json read_message(const Json& object, FieldReader& message) {
    std::string role, content;
    message.read_string("role", role);
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end())
        message.fail("role", "must be system, developer, user, assistant or tool");
    const bool is_assistant = role == "assistant";
    if (role == "developer") role = "system";  // what templates call it
    const Json* given = message.find("content");
    if (given != nullptr)
        read_content(*given, message, content);
    else if (!is_assistant)
        message.fail("content", "must be a string or a list of text parts");
    Json made{{"role", role}, {"content", content}};
    for (const char* name : {"name", "tool_call_id", "reasoning_content"}) {
        std::string text;
        message.read_string(name, text);
        if (!text.empty()) made[name] = text;
    }
    if (const Json* calls = is_assistant ? message.find("tool_calls") : nullptr)
        read_tool_calls(*calls, message, made);
    if (given == nullptr && made.contains("tool_calls")) made["content"] = nullptr;
    for (const char* name : {"audio", "function_call"})
        if (object.contains(name) && !object[name].is_null())
            message.fail_unsupported(name, "not supported");
    return made;
}

}  // namespace

std::variant<Json, ApiError> to_template_messages(const Json& messages) {
    if (!messages.is_array() || messages.empty())
        return ApiError::invalid("messages", "messages: must be a list of at least one message");
    Json list = Json::array();
    for (const Json& object : messages) {
        const std::string place = fmt::format("messages[{}]", list.size());
        if (!object.is_object()) return ApiError::invalid(place, place + ": must be an object");
        FieldReader message(object, place + ".");
        list.push_back(read_message(object, message));
        if (auto error = message.take_error()) return *std::move(error);
    }
    return list;
}

}  // namespace artel::api
