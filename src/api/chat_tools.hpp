// SPDX-License-Identifier: Apache-2.0
// "tools" and "tool_choice" of a chat request -> the list of functions that a template renders.
// A choice that forces a call ("required", a named function) needs constrained decoding and is
// refused. Pure.
#pragma once

#include <string>

#include "api/field_reader.hpp"

namespace artel::api {

inline constexpr std::size_t kToolsMax = 128;
inline constexpr std::size_t kFunctionNameBytesMax = 64;

/// `tools_json` stays empty where there are no tools or tool_choice is "none".
void read_tools(FieldReader& fields, std::string& tools_json);

}  // namespace artel::api
