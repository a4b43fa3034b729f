// SPDX-License-Identifier: Apache-2.0
#include "api/chat_tools.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "api/json_document.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

bool is_function_name(std::string_view name) {
    return !name.empty() && name.size() <= kFunctionNameBytesMax &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == '.';
           });
}

/// The function as templates know it: name, description, parameters.
Json read_function(FieldReader& function, std::set<std::string>& names) {
    std::string name, description;
    function.read_string("name", name);
    if (!is_function_name(name))
        function.fail("name", fmt::format("must be 1 to {} letters, digits, '_', '-' or '.'",
                                          kFunctionNameBytesMax));
    if (!names.insert(name).second) function.fail("name", "is the name of another tool too");
    function.read_string("description", description);
    bool is_strict = false;
    function.read_bool("strict", is_strict);
    if (is_strict)
        function.fail_unsupported("strict", "calls can't be held to a schema by this server yet");
    Json made{{"name", name}, {"description", description}};
    const Json* parameters = function.find("parameters");
    if (parameters != nullptr && !parameters->is_object())
        function.fail("parameters", "must be a JSON schema, which is an object");
    const bool has_schema = parameters != nullptr && parameters->is_object();
    made["parameters"] =
        has_schema ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
    return made;
}

Json read_tool(FieldReader& tool, const std::string& place, std::set<std::string>& names) {
    std::string type;
    tool.read_string("type", type);
    if (type.empty())
        tool.fail("type", "must be \"function\"");
    else if (type != "function")
        tool.fail_unsupported("type", "only tools of type \"function\" are supported");
    const Json* function = tool.find("function");
    if (function == nullptr || !function->is_object()) {
        tool.fail("function", "must be an object");
        return {};
    }
    FieldReader reader(*function, place + ".function.");
    Json made{{"type", "function"}, {"function", read_function(reader, names)}};
    if (auto error = reader.take_error()) tool.fail(*std::move(error));
    return made;
}

/// Whether the model may call tools.
bool read_choice(FieldReader& fields) {
    const Json* choice = fields.find("tool_choice");
    if (choice == nullptr || *choice == "auto") return true;
    if (*choice == "none") return false;
    if (*choice == "required" || choice->is_object())
        fields.fail_unsupported("tool_choice", "only \"auto\" and \"none\" are supported yet");
    else
        fields.fail("tool_choice", "must be \"auto\" or \"none\"");
    return false;
}

}  // namespace

void read_tools(FieldReader& fields, std::string& tools_json) {
    const bool may_call = read_choice(fields);
    const Json* tools = fields.find("tools");
    if (tools == nullptr) return;
    if (!tools->is_array() || tools->size() > kToolsMax)
        return fields.fail("tools", fmt::format("must be a list of up to {} tools", kToolsMax));
    Json made = Json::array();
    std::set<std::string> names;
    for (const Json& tool : *tools) {
        const std::string place = fmt::format("tools[{}]", made.size());
        if (!tool.is_object()) return fields.fail(place, "must be an object");
        FieldReader reader(tool, place + ".");
        made.push_back(read_tool(reader, place, names));
        if (auto error = reader.take_error()) return fields.fail(*std::move(error));
    }
    if (may_call && !made.empty()) tools_json = to_text(made);
}

}  // namespace artel::api
