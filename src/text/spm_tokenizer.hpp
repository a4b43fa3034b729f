// SPDX-License-Identifier: Apache-2.0
// SentencePiece-style BPE (GGUF model "llama"): spaces become U+2581, the text is cut into
// characters, and the neighbours that together are the token with the highest score are joined, the
// leftmost first, until none is left. Characters without a token fall back to byte tokens.
// Text pieces that stand at the start or after a special token get a space in front, if the model
// says so.
#pragma once

#include <array>
#include <unordered_map>

#include "text/tokenizer.hpp"

namespace artel::text {

class SpmTokenizer final : public Tokenizer {
  public:
    /// Takes a validated vocabulary.
    static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);

  private:
    class Merger;

    explicit SpmTokenizer(Vocabulary vocabulary);
    void index_tokens();
    void append_plain(std::string_view bytes, std::vector<TokenId>& ids) const override;
    std::optional<TokenId> find_piece(std::string_view piece) const;

    std::unordered_map<std::string_view, TokenId> id_of_;  // normal and unused tokens
    std::size_t piece_bytes_max_ = 0;
    std::array<std::optional<TokenId>, 256> id_of_byte_;
};

}  // namespace artel::text
