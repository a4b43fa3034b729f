// SPDX-License-Identifier: Apache-2.0
// Vocabulary: the tokenizer.* metadata of a model file as plain values, not yet a tokenizer.
// from_metadata checks types and lengths while it reads; validate() checks that the values agree
// with each other (lengths, id ranges, byte tokens, duplicates), so a Tokenizer may rely on them.
// Messages name the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "text/token.hpp"

namespace artel::gguf {
class Metadata;
}

namespace artel::text {

/// What a token is; the numbers are those of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
    Normal = 1,       // made by merging
    Unknown = 2,      // stands for text that no other token covers
    Control = 3,      // steers the model; never text unless the caller parses special tokens
    UserDefined = 4,  // matched as a whole before anything else, wherever it stands in the text
    Unused = 5,       // takes part in merging but is never output
    Byte = 6,         // spelled <0xNN>: one byte of text that no other token covers
};

struct Vocabulary {
    std::string model;  // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SentencePiece)
    std::string pre;    // tokenizer.ggml.pre: how text is cut before merging; may be empty
    std::vector<std::string> texts;   // (tokens) as spelled in the file
    std::vector<TokenType> types;     // (tokens); empty means all Normal
    std::vector<float> scores;        // (tokens) for "llama"; empty for "gpt2"
    std::vector<std::string> merges;  // "left right", best first, for "gpt2"
    std::optional<TokenId> bos, eos, eot, eom, unknown;
    std::optional<bool> adds_bos, adds_space_prefix;  // unset: the file does not say

    static constexpr std::size_t kTokensMax = 4'000'000;
    static constexpr std::size_t kTokenBytesMax = 65'536;

    static Result<Vocabulary> from_metadata(const gguf::Metadata& metadata);
    Error validate() const;
    TokenType type(TokenId id) const { return types.empty() ? TokenType::Normal : types[id]; }
};

/// The byte of a token spelled <0xNN> with two hex digits, else nothing.
std::optional<std::uint8_t> byte_of_spelling(const std::string& text);

}  // namespace artel::text
