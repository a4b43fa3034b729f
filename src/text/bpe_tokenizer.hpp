// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE (GGUF model "gpt2"): each byte is spelled as one visible character, the text is
// cut into pieces by a pre-tokenizer, and within a piece the neighbours with the best merge are
// joined, the leftmost first, until none is left. Bytes for which the vocabulary has no token are
// left out, as in the reference; where they are not valid UTF-8, U+FFFD stands for them.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "text/pre_tokenizer.hpp"
#include "text/tokenizer.hpp"

namespace artel::text {

class BpeTokenizer final : public Tokenizer {
  public:
    /// Takes a validated vocabulary.
    static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

  private:
    struct Merge {
        std::uint32_t rank;
        TokenId merged;
    };
    class Merger;

    BpeTokenizer(Vocabulary vocabulary, const PreTokenizerKind& kind, PreTokenizer pre_tokenizer);
    Error read_merges();
    void index_tokens();
    void append_plain(std::string_view bytes, std::vector<TokenId>& ids) const override;
    void append_valid(std::string_view text, Merger& merger, std::vector<TokenId>& ids) const;

    PreTokenizer pre_tokenizer_;
    bool prefers_whole_pieces_;
    std::array<std::optional<TokenId>, 256> id_of_byte_;
    std::unordered_map<std::uint64_t, Merge> merges_;      // left << 32 | right
    std::unordered_map<std::string_view, TokenId> id_of_;  // by bytes; if whole pieces count
};

}  // namespace artel::text
