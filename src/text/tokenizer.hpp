// SPDX-License-Identifier: Apache-2.0
// Tokenizer: text <-> token ids for one vocabulary. Immutable after create(), so any thread may use
// it. Input is bytes: invalid UTF-8 gives tokens too, never an error or a crash. Time is about
// linear in the input and nothing recurses on its length.
//
// Special tokens: user-defined tokens are always matched; control tokens only where the caller says
// ParseSpecial::Yes. Leftmost match first, then the longest. Merging never yields a control token,
// so text typed by a user cannot become one.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/prompt.hpp"
#include "text/token.hpp"
#include "text/vocabulary.hpp"

namespace artel::text {

class SpecialMatcher;

enum class AddBos { No, IfModelSays };

struct TokenizeOptions {
    ParseSpecial special = ParseSpecial::No;
    AddBos bos = AddBos::No;
};

class Tokenizer {
  public:
    /// Errors: InvalidArgument (the vocabulary contradicts itself), Unimplemented (a model or
    /// pre-tokenizer kind that is not supported; the message lists those that are).
    static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);
    static Result<std::unique_ptr<Tokenizer>> create(const gguf::Metadata& metadata);
    virtual ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    std::vector<TokenId> tokenize(std::string_view bytes, TokenizeOptions options) const;
    /// The segments as one text: merges cross their borders, but a control token counts only if it
    /// lies wholly within text that parses special tokens. A rendered chat prompt already holds its
    /// BOS, so with AddBos::IfModelSays it is added only if the tokens do not start with it.
    std::vector<TokenId> tokenize(std::span<const PromptSegment> segments, AddBos bos) const;

    /// No text of so many bytes has fewer tokens: what can never fit is known without the seconds
    /// that tokenizing megabytes takes.
    std::uint64_t fewest_tokens(std::uint64_t bytes) const { return bytes / longest_token_; }

    /// The bytes that the token adds to a text (may be part of a character); empty for control
    /// tokens and for ids outside the vocabulary.
    std::string_view token_bytes(TokenId id) const;
    /// The spelling in the file, e.g. "<|im_end|>"; empty for ids outside the vocabulary.
    std::string_view token_spelling(TokenId id) const;
    bool is_control(TokenId id) const;

    std::size_t vocabulary_size() const { return vocabulary_.texts.size(); }
    std::optional<TokenId> bos() const { return vocabulary_.bos; }
    std::optional<TokenId> eos() const { return vocabulary_.eos; }
    bool adds_bos() const { return adds_bos_ && vocabulary_.bos.has_value(); }
    /// Text starts with a space that is not part of it (SentencePiece); see StreamDetokenizer.
    bool adds_space_prefix() const { return adds_space_prefix_; }
    /// Every token that ends a generation: eos, eot, eom and well-known control spellings.
    const std::set<TokenId>& end_of_generation() const { return end_of_generation_; }
    /// Spellings of all control tokens; ChatTemplate keeps them apart from message text.
    std::vector<std::string> control_spellings() const;

  protected:
    /// What holds if the file does not say.
    struct Defaults {
        bool adds_bos;
        bool adds_space_prefix;
    };
    Tokenizer(Vocabulary vocabulary, Defaults defaults);

    /// Appends the tokens of text without special tokens.
    virtual void append_plain(std::string_view bytes, std::vector<TokenId>& ids) const = 0;
    const Vocabulary& vocabulary() const { return vocabulary_; }
    void set_token_bytes(std::vector<std::string> bytes);

  private:
    Vocabulary vocabulary_;
    bool adds_bos_;
    bool adds_space_prefix_;
    std::vector<std::string> token_bytes_;  // (tokens)
    std::uint64_t longest_token_ = 1;       // bytes of text that one token can stand for
    std::set<TokenId> end_of_generation_;
    std::unique_ptr<const SpecialMatcher> special_matcher_;
};

}  // namespace artel::text
