// SPDX-License-Identifier: Apache-2.0
// SpecialMatcher: finds the tokens that are matched as a whole (user-defined, control, unknown) in
// a text: at each position the longest one. A trie; immutable, usable from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/token.hpp"
#include "text/vocabulary.hpp"

namespace artel::text {

class SpecialMatcher {
  public:
    explicit SpecialMatcher(const Vocabulary& vocabulary);

    struct Match {
        TokenId id;
        std::size_t count;  // bytes
    };
    /// The longest token that begins at `position`. Control and unknown tokens count only if they
    /// end at or before `control_until`.
    std::optional<Match> match(std::string_view text, std::size_t position,
                               std::size_t control_until) const;

  private:
    struct Node {
        std::optional<TokenId> token;
        bool is_control = false;
    };
    void insert(std::string_view spelling, TokenId id, bool is_control);

    std::vector<Node> nodes_{1};
    std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node << 8 | byte -> node
    std::array<bool, 256> begins_{};                          // some token begins with this byte
};

}  // namespace artel::text
