// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary.hpp"

#include <cmath>
#include <string_view>
#include <unordered_map>

namespace artel::text {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

Error check_lengths(const Vocabulary& vocabulary) {
    const std::size_t count = vocabulary.texts.size();
    if (count == 0) return invalid_argument("tokenizer.ggml.tokens: there are no tokens");
    if (count > Vocabulary::kTokensMax)
        return invalid_argument("tokenizer.ggml.tokens: {} tokens; at most {} are supported", count,
                                Vocabulary::kTokensMax);
    if (!vocabulary.types.empty() && vocabulary.types.size() != count)
        return invalid_argument("tokenizer.ggml.token_type: {} entries for {} tokens",
                                vocabulary.types.size(), count);
    if (vocabulary.model == "llama" && vocabulary.scores.size() != count)
        return invalid_argument("tokenizer.ggml.scores: {} entries for {} tokens",
                                vocabulary.scores.size(), count);
    return ok();
}

Error check_tokens(const Vocabulary& vocabulary) {
    std::unordered_map<std::string_view, std::size_t> seen;
    seen.reserve(vocabulary.texts.size());
    for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
        const std::string& text = vocabulary.texts[id];
        if (text.size() > Vocabulary::kTokenBytesMax)
            return invalid_argument("tokenizer.ggml.tokens: token {} has {} bytes; at most {}", id,
                                    text.size(), Vocabulary::kTokenBytesMax);
        if (const auto [first, is_new] = seen.emplace(text, id); !is_new)
            return invalid_argument("tokenizer.ggml.tokens: tokens {} and {} are both spelled '{}'",
                                    first->second, id, text.substr(0, 64));
    }
    return ok();
}

Error check_types(const Vocabulary& vocabulary) {
    std::optional<std::size_t> id_of_byte[256];
    for (std::size_t id = 0; id < vocabulary.types.size(); ++id) {
        const auto number = static_cast<int>(vocabulary.types[id]);
        if (number < 1 || number > 6)
            return invalid_argument(
                "tokenizer.ggml.token_type: token {} has type {}; expected 1 to 6", id, number);
        if (vocabulary.types[id] != TokenType::Byte) continue;
        const auto byte = byte_of_spelling(vocabulary.texts[id]);
        if (!byte)
            return invalid_argument(
                "tokenizer.ggml.tokens: token {} is a byte token spelled '{}'; expected <0xNN> "
                "with two hex digits",
                id, vocabulary.texts[id].substr(0, 64));
        if (id_of_byte[*byte])
            return invalid_argument("tokenizer.ggml.tokens: tokens {} and {} are the same byte {}",
                                    *id_of_byte[*byte], id, *byte);
        id_of_byte[*byte] = id;
    }
    return ok();
}

Error check_scores(const Vocabulary& vocabulary) {
    for (std::size_t id = 0; id < vocabulary.scores.size(); ++id)
        if (!std::isfinite(vocabulary.scores[id]))
            return invalid_argument("tokenizer.ggml.scores: the score of token {} is not a number",
                                    id);
    return ok();
}

Error check_merges(const Vocabulary& vocabulary) {
    for (std::size_t i = 0; i < vocabulary.merges.size(); ++i) {
        const std::string& merge = vocabulary.merges[i];
        const std::size_t space = merge.find(' ');
        if (space == std::string::npos || space == 0 || space + 1 == merge.size() ||
            merge.find(' ', space + 1) != std::string::npos)
            return invalid_argument(
                "tokenizer.ggml.merges: merge {} is '{}'; expected two parts and one space", i,
                merge.substr(0, 64));
    }
    return ok();
}

Error check_id(const Vocabulary& vocabulary, std::optional<TokenId> id, std::string_view name) {
    if (id && *id >= vocabulary.texts.size())
        return invalid_argument("tokenizer.ggml.{}_token_id: {} of {} tokens", name, *id,
                                vocabulary.texts.size());
    return ok();
}

}  // namespace

Error Vocabulary::validate() const {
    ARTEL_TRY(check_lengths(*this));
    ARTEL_TRY(check_tokens(*this));
    ARTEL_TRY(check_types(*this));
    ARTEL_TRY(check_scores(*this));
    ARTEL_TRY(check_merges(*this));
    ARTEL_TRY(check_id(*this, bos, "bos"));
    ARTEL_TRY(check_id(*this, eos, "eos"));
    ARTEL_TRY(check_id(*this, eot, "eot"));
    ARTEL_TRY(check_id(*this, eom, "eom"));
    return check_id(*this, unknown, "unknown");
}

std::optional<std::uint8_t> byte_of_spelling(const std::string& text) {
    if (text.size() != 6 || text.compare(0, 3, "<0x") != 0 || text[5] != '>') return std::nullopt;
    const int high = hex_digit(text[3]);
    const int low = hex_digit(text[4]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<std::uint8_t>(high * 16 + low);
}

}  // namespace artel::text
