// SPDX-License-Identifier: Apache-2.0
// Names that nobody can guess, for answers, tool calls and HTTP requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace artel::api {

/// `prefix` and 24 hexadecimal digits.
std::string random_name(std::string_view prefix);
/// 63 random bits: seeds travel in JSON, whose integers are signed.
std::uint64_t random_seed();

}  // namespace artel::api
