// SPDX-License-Identifier: Apache-2.0
// The "messages" of a chat request -> the list that a template renders: roles checked, content
// made one string, tool-call arguments made objects, fields unknown to templates left out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>

#include "api/api_error.hpp"

namespace artel::api {

/// Errors name the message by its number.
std::variant<nlohmann::ordered_json, ApiError> to_template_messages(
    const nlohmann::ordered_json& messages);

}  // namespace artel::api
