// SPDX-License-Identifier: Apache-2.0
// Vocabulary::from_metadata: which keys of a GGUF file say what.
#include "gguf/metadata.hpp"
#include "text/vocabulary.hpp"

namespace artel::text {
namespace {

std::string key_of(std::string_view name) {
    return "tokenizer.ggml." + std::string(name);
}

/// Real files write "none" as the largest value of the type.
Result<std::optional<TokenId>> find_id(const gguf::Metadata& metadata, std::string_view name) {
    const std::string key = key_of(name);
    ARTEL_ASSIGN(const auto id, metadata.find<std::int64_t>(key));
    if (!id || *id == -1 || *id == UINT32_MAX) return std::nullopt;
    if (*id < 0 || *id > UINT32_MAX) return invalid_argument("{}: {} is not a token id", key, *id);
    return static_cast<TokenId>(*id);
}

Result<std::vector<std::string>> find_texts(const gguf::Metadata& metadata, std::string_view name) {
    ARTEL_ASSIGN(const auto views, metadata.find_array<std::string_view>(key_of(name)));
    std::vector<std::string> texts;
    if (views) texts.assign(views->begin(), views->end());
    return texts;
}

Result<std::vector<TokenType>> find_types(const gguf::Metadata& metadata) {
    const std::string key = key_of("token_type");
    ARTEL_ASSIGN(const auto numbers, metadata.find_array<std::int32_t>(key));
    std::vector<TokenType> types;
    if (!numbers) return types;
    types.reserve(numbers->size());
    for (const std::int32_t number : *numbers) {
        if (number < 1 || number > 6)
            return invalid_argument("{}: token {} has type {}; expected 1 to 6", key, types.size(),
                                    number);
        types.push_back(static_cast<TokenType>(number));
    }
    return types;
}

Error read_ids(const gguf::Metadata& metadata, Vocabulary& vocabulary) {
    ARTEL_ASSIGN(vocabulary.bos, find_id(metadata, "bos_token_id"));
    ARTEL_ASSIGN(vocabulary.eos, find_id(metadata, "eos_token_id"));
    ARTEL_ASSIGN(vocabulary.eot, find_id(metadata, "eot_token_id"));
    ARTEL_ASSIGN(vocabulary.eom, find_id(metadata, "eom_token_id"));
    ARTEL_ASSIGN(vocabulary.unknown, find_id(metadata, "unknown_token_id"));
    return ok();
}

}  // namespace

Result<Vocabulary> Vocabulary::from_metadata(const gguf::Metadata& metadata) {
    Vocabulary vocabulary;
    ARTEL_ASSIGN(vocabulary.model, metadata.get<std::string_view>(key_of("model")));
    ARTEL_ASSIGN(const auto pre, metadata.find<std::string_view>(key_of("pre")));
    vocabulary.pre = pre.value_or("");
    ARTEL_ASSIGN(const auto texts, metadata.get_array<std::string_view>(key_of("tokens")));
    vocabulary.texts.assign(texts.begin(), texts.end());
    ARTEL_ASSIGN(vocabulary.types, find_types(metadata));
    ARTEL_ASSIGN(auto scores, metadata.find_array<float>(key_of("scores")));
    // Byte-level BPE has no use for scores, but some files carry them.
    if (scores && vocabulary.model != "gpt2") vocabulary.scores = *std::move(scores);
    ARTEL_ASSIGN(vocabulary.merges, find_texts(metadata, "merges"));
    ARTEL_TRY(read_ids(metadata, vocabulary));
    ARTEL_ASSIGN(vocabulary.adds_bos, metadata.find<bool>(key_of("add_bos_token")));
    ARTEL_ASSIGN(vocabulary.adds_space_prefix, metadata.find<bool>(key_of("add_space_prefix")));
    return vocabulary;
}

}  // namespace artel::text
