// SPDX-License-Identifier: Apache-2.0
// StreamDetokenizer: token ids one by one -> text that is valid UTF-8 at every step.
// A character whose bytes come from several tokens is held back until it is whole; wrong bytes
// become U+FFFD, one for each maximal subpart. Borrows the tokenizer; one stream, one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/token.hpp"
#include "text/tokenizer.hpp"

namespace artel::text {

/// Bytes in any cuts -> valid UTF-8, holding back at most 3 bytes.
class Utf8Stream {
  public:
    std::string add(std::string_view bytes);
    /// What is still held back, as U+FFFD.
    std::string finish();

  private:
    std::string held_;
};

struct DetokenizeOptions {
    /// The stream is the start of a text: a space that the tokenizer put in front is dropped. Not
    /// so for a generation, which continues its prompt.
    bool starts_text = false;
    /// Control tokens are spelled out instead of left out.
    bool shows_control = false;
};

class StreamDetokenizer {
  public:
    explicit StreamDetokenizer(const Tokenizer& tokenizer, DetokenizeOptions options = {});

    /// The text that became certain; often empty. Ids outside the vocabulary add nothing.
    std::string add(TokenId id);
    /// The rest. The stream is then as new, but no longer at the start of a text.
    std::string finish();

  private:
    const Tokenizer& tokenizer_;
    DetokenizeOptions options_;
    bool drops_space_;
    Utf8Stream utf8_;
};

/// All of it at once, as a text of its own.
std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                       DetokenizeOptions options = {.starts_text = true});

}  // namespace artel::text
