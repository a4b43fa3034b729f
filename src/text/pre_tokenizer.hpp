// SPDX-License-Identifier: Apache-2.0
// PreTokenizer: cuts text into the pieces within which byte-level BPE merges, by the regular
// expressions of its kind. Immutable, usable from any thread. Pieces are never lost: a pattern that
// fails (match limits) gives up one character and goes on.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/pre_tokenizer_kinds.hpp"

namespace artel::text {

class PreTokenizer {
  public:
    static Result<PreTokenizer> create(const PreTokenizerKind& kind);
    PreTokenizer(PreTokenizer&&) noexcept;
    PreTokenizer& operator=(PreTokenizer&&) noexcept;
    ~PreTokenizer();

    /// The pieces of a valid UTF-8 text, in order; together they are the text.
    std::vector<std::string_view> split(std::string_view text) const;

  private:
    class Pattern;
    explicit PreTokenizer(std::vector<Pattern> patterns);
    std::vector<Pattern> patterns_;
};

}  // namespace artel::text
