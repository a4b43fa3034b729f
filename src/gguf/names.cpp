// SPDX-License-Identifier: Apache-2.0
#include "gguf/names.hpp"

#include <fmt/core.h>

#include <cstdint>

namespace artel::gguf {

namespace {

constexpr std::size_t kShownBytesMax = 64;

std::uint8_t byte_at(std::string_view text, std::size_t index) {
    return index < text.size() ? static_cast<std::uint8_t>(text[index]) : 0;
}

/// Length of the well-formed UTF-8 sequence at `first` (Unicode, table 3-7), or 0.
std::size_t utf8_length(std::string_view text, std::size_t first) {
    const std::uint8_t lead = byte_at(text, first);
    if (lead < 0x80) return 1;
    std::size_t length = 0;
    std::uint8_t second_min = 0x80;  // bounds that keep out overlong forms and surrogates
    std::uint8_t second_max = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) length = 2;
    if (lead >= 0xE0 && lead <= 0xEF) length = 3;
    if (lead >= 0xF0 && lead <= 0xF4) length = 4;
    if (lead == 0xE0) second_min = 0xA0;
    if (lead == 0xED) second_max = 0x9F;
    if (lead == 0xF0) second_min = 0x90;
    if (lead == 0xF4) second_max = 0x8F;
    if (length == 0 || byte_at(text, first + 1) < second_min ||
        byte_at(text, first + 1) > second_max)
        return 0;
    for (std::size_t i = 2; i < length; ++i)
        if ((byte_at(text, first + i) & 0xC0) != 0x80) return 0;
    return length;
}

}  // namespace

Error check_name(std::string_view noun, std::string_view name) {
    if (name.empty()) return invalid_argument("the {} is empty", noun);
    for (std::size_t i = 0; i < name.size();) {
        const std::size_t length = utf8_length(name, i);
        if (length == 0) return invalid_argument("{} {} is not UTF-8", noun, quote_name(name));
        const bool is_low = length == 1 && (byte_at(name, i) < 0x20 || byte_at(name, i) == 0x7F);
        const bool is_high = byte_at(name, i) == 0xC2 && byte_at(name, i + 1) < 0xA0;
        if (is_low || is_high)
            return invalid_argument("{} {} has a control character", noun, quote_name(name));
        i += length;
    }
    return ok();
}

std::string quote_name(std::string_view name) {
    std::string shown = "'";
    for (const char c : name.substr(0, kShownBytesMax)) {
        const bool is_plain = c >= 0x20 && c < 0x7F && c != '\'' && c != '\\';
        if (is_plain)
            shown += c;
        else
            shown += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(c));
    }
    return shown + (name.size() > kShownBytesMax ? "'..." : "'");
}

}  // namespace artel::gguf
