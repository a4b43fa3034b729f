// SPDX-License-Identifier: Apache-2.0
// JSON from outside -> a tree, in one pass with limits: nesting, number of values, no key twice in
// an object, valid UTF-8, finite numbers, nothing after the value. Key order is kept. Never throws.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace artel::api {

inline constexpr std::size_t kJsonDepthMax = 64;
inline constexpr std::size_t kJsonValuesMax = 1'000'000;

/// Errors: InvalidArgument, saying what is wrong at which byte.
Result<nlohmann::ordered_json> parse_json(std::string_view text);
/// The same for a request body, which must be an object.
Result<nlohmann::ordered_json> parse_object(std::string_view body);
/// One line; invalid UTF-8 (there should be none) becomes U+FFFD.
std::string to_text(const nlohmann::ordered_json& value);

}  // namespace artel::api
