// SPDX-License-Identifier: Apache-2.0
#include "text/special_matcher.hpp"

namespace artel::text {
namespace {

std::uint64_t edge_key(std::uint32_t node, char byte) {
    return (static_cast<std::uint64_t>(node) << 8) | static_cast<unsigned char>(byte);
}

}  // namespace

SpecialMatcher::SpecialMatcher(const Vocabulary& vocabulary) {
    for (TokenId id = 0; id < vocabulary.texts.size(); ++id) {
        const TokenType type = vocabulary.type(id);
        const bool is_control = type == TokenType::Control || type == TokenType::Unknown;
        if (is_control || type == TokenType::UserDefined)
            insert(vocabulary.texts[id], id, is_control);
    }
}

void SpecialMatcher::insert(std::string_view spelling, TokenId id, bool is_control) {
    if (spelling.empty()) return;
    begins_[static_cast<unsigned char>(spelling[0])] = true;
    std::uint32_t node = 0;
    for (const char byte : spelling) {
        const auto next = static_cast<std::uint32_t>(nodes_.size());
        const auto [edge, is_new] = edges_.emplace(edge_key(node, byte), next);
        if (is_new) nodes_.emplace_back();
        node = edge->second;
    }
    nodes_[node] = {id, is_control};
}

std::optional<SpecialMatcher::Match> SpecialMatcher::match(std::string_view text,
                                                           std::size_t position,
                                                           std::size_t control_until) const {
    if (!begins_[static_cast<unsigned char>(text[position])]) return std::nullopt;
    std::optional<Match> longest;
    std::uint32_t node = 0;
    for (std::size_t i = position; i < text.size(); ++i) {
        const auto edge = edges_.find(edge_key(node, text[i]));
        if (edge == edges_.end()) break;
        node = edge->second;
        const Node& reached = nodes_[node];
        if (reached.token && (!reached.is_control || i < control_until))
            longest = Match{*reached.token, i + 1 - position};
    }
    return longest;
}

}  // namespace artel::text
