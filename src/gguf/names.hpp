// SPDX-License-Identifier: Apache-2.0
// Names of metadata keys and tensors as they come from a file: what is accepted (UTF-8 without
// control characters), and how any bytes are shown in a message.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace artel::gguf {

/// InvalidArgument where `name` is empty, not UTF-8, or has control characters; `noun` is what
/// the message calls it.
Error check_name(std::string_view noun, std::string_view name);
/// 'name', with anything but printable ASCII as \xNN and cut after 64 bytes.
std::string quote_name(std::string_view name);

}  // namespace artel::gguf
