// SPDX-License-Identifier: Apache-2.0
// UTF-8 by the Unicode standard, table 3-7: no surrogates, no overlong forms, nothing above
// U+10FFFF. A wrong sequence is cut by the maximal-subpart rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace artel::text {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// What stands at the start of a text.
struct Utf8Prefix {
    enum class Kind {
        Character,   // `count` bytes are one character
        Invalid,     // `count` bytes are one maximal subpart of a wrong sequence
        Incomplete,  // the text ends inside what could still become a character
    };
    Kind kind;
    std::size_t count;
};

/// Requires a non-empty text.
Utf8Prefix read_utf8(std::string_view text);

/// Length of the longest valid prefix.
std::size_t valid_utf8_bytes(std::string_view text);
inline bool is_valid_utf8(std::string_view text) {
    return valid_utf8_bytes(text) == text.size();
}

/// Characters of a valid text.
std::size_t count_characters(std::string_view valid);

/// Appends `code_point`, which must not be above U+10FFFF.
void append_utf8(std::string& text, std::uint32_t code_point);
/// The code point of one valid character.
std::uint32_t decode_utf8(std::string_view character);

}  // namespace artel::text
