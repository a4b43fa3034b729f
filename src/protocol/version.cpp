// SPDX-License-Identifier: Apache-2.0
#include "protocol/version.hpp"

#include <cctype>

namespace artel::protocol {

std::uint64_t schema_hash(std::string_view proto_text) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    bool is_comment = false;
    for (std::size_t i = 0; i < proto_text.size(); ++i) {
        if (proto_text.substr(i, 2) == "//") is_comment = true;
        if (proto_text[i] == '\n') is_comment = false;
        const auto character = static_cast<unsigned char>(proto_text[i]);
        if (is_comment || std::isspace(character) != 0) continue;
        hash = (hash ^ character) * 0x100000001B3ULL;
    }
    return hash;
}

}  // namespace artel::protocol
