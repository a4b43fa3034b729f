// SPDX-License-Identifier: Apache-2.0
// THE list of pre-tokenizer kinds: a name in tokenizer.ggml.pre -> how that family cuts text before
// merging, and what its files leave unsaid. The patterns are part of each model's tokenizer.json. A
// new kind is a new entry, with golden vectors; an unknown name is refused, never guessed.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace artel::text {

struct PreTokenizerKind {
    std::string_view name;
    /// Each pattern cuts every piece that the ones before have left: matches are pieces, and so is
    /// what lies between them.
    std::span<const char* const> patterns;
    /// BOS is added if the file does not say.
    bool adds_bos = false;
    /// A piece that is a token is that token, even if merging would not lead to it.
    bool prefers_whole_pieces = false;
};

/// Nothing if there is no such kind.
const PreTokenizerKind* find_pre_tokenizer_kind(std::string_view name);
std::span<const PreTokenizerKind> pre_tokenizer_kinds();
/// "gpt-2, llama-bpe, ...", for messages.
std::string pre_tokenizer_kind_names();

}  // namespace artel::text
