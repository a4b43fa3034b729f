// SPDX-License-Identifier: Apache-2.0
#include "text/detokenizer.hpp"

#include "text/utf8.hpp"

namespace artel::text {

std::string Utf8Stream::add(std::string_view bytes) {
    held_ += bytes;
    std::string text;
    std::string_view rest = held_;
    while (!rest.empty()) {
        const Utf8Prefix prefix = read_utf8(rest);
        if (prefix.kind == Utf8Prefix::Kind::Incomplete) break;
        const bool is_character = prefix.kind == Utf8Prefix::Kind::Character;
        text += is_character ? rest.substr(0, prefix.count) : kReplacementCharacter;
        rest.remove_prefix(prefix.count);
    }
    held_ = std::string(rest);
    return text;
}

std::string Utf8Stream::finish() {
    // What is held is the beginning of one character: one maximal subpart.
    const bool holds = !held_.empty();
    held_.clear();
    return holds ? std::string(kReplacementCharacter) : std::string();
}

StreamDetokenizer::StreamDetokenizer(const Tokenizer& tokenizer, DetokenizeOptions options)
    : tokenizer_(tokenizer),
      options_(options),
      drops_space_(options.starts_text && tokenizer.adds_space_prefix()) {}

std::string StreamDetokenizer::add(TokenId id) {
    if (tokenizer_.is_control(id)) {
        if (!options_.shows_control) return {};
        return utf8_.add(tokenizer_.token_spelling(id));
    }
    std::string_view bytes = tokenizer_.token_bytes(id);
    if (bytes.empty()) return {};
    if (drops_space_ && bytes[0] == ' ') bytes.remove_prefix(1);
    drops_space_ = false;
    return utf8_.add(bytes);
}

std::string StreamDetokenizer::finish() {
    drops_space_ = false;
    return utf8_.finish();
}

std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                       DetokenizeOptions options) {
    StreamDetokenizer stream(tokenizer, options);
    std::string text;
    for (const TokenId id : ids) text += stream.add(id);
    return text + stream.finish();
}

}  // namespace artel::text
