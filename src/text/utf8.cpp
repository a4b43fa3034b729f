// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.hpp"

namespace artel::text {
namespace {

struct LeadByte {
    std::size_t count;             // bytes of the character; 0: cannot begin one
    unsigned char second_lowest;   // allowed range of the second byte
    unsigned char second_highest;  // (later bytes: 80 to BF)
};

LeadByte lead_byte(unsigned char byte) {
    if (byte < 0x80) return {1, 0, 0};
    if (byte < 0xC2) return {0, 0, 0};
    if (byte < 0xE0) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};
    if (byte == 0xED) return {3, 0x80, 0x9F};
    if (byte < 0xF0) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};
    if (byte < 0xF4) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};
    return {0, 0, 0};
}

}  // namespace

Utf8Prefix read_utf8(std::string_view text) {
    const LeadByte lead = lead_byte(static_cast<unsigned char>(text[0]));
    if (lead.count == 0) return {Utf8Prefix::Kind::Invalid, 1};
    for (std::size_t i = 1; i < lead.count; ++i) {
        if (i == text.size()) return {Utf8Prefix::Kind::Incomplete, i};
        const auto byte = static_cast<unsigned char>(text[i]);
        const unsigned char lowest = i == 1 ? lead.second_lowest : 0x80;
        const unsigned char highest = i == 1 ? lead.second_highest : 0xBF;
        if (byte < lowest || byte > highest) return {Utf8Prefix::Kind::Invalid, i};
    }
    return {Utf8Prefix::Kind::Character, lead.count};
}

std::size_t valid_utf8_bytes(std::string_view text) {
    std::size_t position = 0;
    while (position < text.size()) {
        const Utf8Prefix prefix = read_utf8(text.substr(position));
        if (prefix.kind != Utf8Prefix::Kind::Character) break;
        position += prefix.count;
    }
    return position;
}

std::size_t count_characters(std::string_view valid) {
    std::size_t count = 0;
    for (const char c : valid) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    return count;
}

void append_utf8(std::string& text, std::uint32_t code_point) {
    const auto push = [&text](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
    if (code_point < 0x80) {
        push(code_point);
    } else if (code_point < 0x800) {
        push(0xC0 | (code_point >> 6));
        push(0x80 | (code_point & 0x3F));
    } else if (code_point < 0x10000) {
        push(0xE0 | (code_point >> 12));
        push(0x80 | ((code_point >> 6) & 0x3F));
        push(0x80 | (code_point & 0x3F));
    } else {
        push(0xF0 | (code_point >> 18));
        push(0x80 | ((code_point >> 12) & 0x3F));
        push(0x80 | ((code_point >> 6) & 0x3F));
        push(0x80 | (code_point & 0x3F));
    }
}

std::uint32_t decode_utf8(std::string_view character) {
    const auto lead = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) return lead;
    const unsigned lead_bits = 7 - static_cast<unsigned>(character.size());
    std::uint32_t code_point = lead & ((1U << lead_bits) - 1);
    for (const char byte : character.substr(1))
        code_point = (code_point << 6) | (static_cast<unsigned char>(byte) & 0x3F);
    return code_point;
}

}  // namespace artel::text
