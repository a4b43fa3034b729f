// SPDX-License-Identifier: Apache-2.0
#include "text/pre_tokenizer_kinds.hpp"

#include <array>

namespace artel::text {
namespace {

// Contractions, then words, numbers and signs with the space before them, then white space of which
// the last character goes to the word that follows.
#define ARTEL_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
// As GPT-2's, but contractions in any case, any one sign before a word, line ends kept together;
// numbers in groups of up to three digits (Llama 3) or one by one (Qwen 2).
#define ARTEL_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define ARTEL_LLAMA3(numbers)                                  \
    ARTEL_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)" numbers \
                       R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
// A word is cut where small letters are followed by a capital; marks belong to words.
#define ARTEL_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define ARTEL_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define ARTEL_CASED(upper, lower, ending)                                                       \
    R"([^\r\n\p{L}\p{N}]?)" upper "*" lower "+" ending R"(|[^\r\n\p{L}\p{N}]?)" upper "+" lower \
    "*" ending
#define ARTEL_AFTER_CASED(numbers, line_ends) \
    "|" numbers R"(| ?[^\s\p{L}\p{N}]+)" line_ends R"(*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define ARTEL_HAN_KANA_HANGUL R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)"

constexpr std::array kGpt2 = {ARTEL_GPT2};
constexpr std::array kDigitsThenGpt2 = {R"(\p{N})", ARTEL_GPT2};
constexpr std::array kLlama3 = {ARTEL_LLAMA3(R"(\p{N}{1,3})")};
constexpr std::array kQwen2 = {ARTEL_LLAMA3(R"(\p{N})")};
// As Qwen 2's, with marks in words.
constexpr std::array kQwen35 = {ARTEL_CONTRACTIONS
                                R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
                                R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array kGpt4o = {ARTEL_CASED(ARTEL_UPPER, ARTEL_LOWER, ARTEL_CONTRACTIONS "?")
                                   ARTEL_AFTER_CASED(R"(\p{N}{1,3})", R"([\r\n/])")};
constexpr std::array kTekken = {ARTEL_CASED(ARTEL_UPPER, ARTEL_LOWER, "")
                                    ARTEL_AFTER_CASED(R"(\p{N})", R"([\r\n/])")};
constexpr std::array kDeepseekCoder = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                       ARTEL_HAN_KANA_HANGUL, R"(\p{N})"};
constexpr std::array kDeepseekV3 = {
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array kFalcon = {R"([\p{P}$+<=>^~|`]+)", ARTEL_GPT2, R"([0-9][0-9][0-9])"};
// Whatever stands between white space and the signs of some scripts.
#define ARTEL_BLOOM R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)"
constexpr std::array kBloom = {ARTEL_BLOOM};
constexpr std::array kViking = {ARTEL_BLOOM, R"(\p{N})"};
constexpr std::array kBailing = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::array kSeedCoder = {ARTEL_CONTRACTIONS
                                   R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)"
                                   R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr PreTokenizerKind like_llama3(std::string_view name) {
    return {.name = name, .patterns = kLlama3, .adds_bos = true, .prefers_whole_pieces = true};
}

// In the order of the alphabet, which is how messages name them.
constexpr PreTokenizerKind kKinds[] = {
    {.name = "bailingmoe", .patterns = kBailing},
    {.name = "bloom", .patterns = kBloom},
    {.name = "chatglm-bpe", .patterns = kLlama3},
    {.name = "codeshell", .patterns = kDigitsThenGpt2},
    {.name = "command-r", .patterns = kDigitsThenGpt2},
    {.name = "dbrx", .patterns = kLlama3},
    {.name = "deepseek-coder", .patterns = kDeepseekCoder},
    {.name = "deepseek-r1-qwen", .patterns = kQwen2},
    {.name = "deepseek-v3", .patterns = kDeepseekV3},
    {.name = "exaone", .patterns = kDigitsThenGpt2},
    {.name = "falcon", .patterns = kFalcon},
    {.name = "glm4", .patterns = kLlama3},
    {.name = "gpt-2", .patterns = kGpt2},
    {.name = "gpt-4o", .patterns = kGpt4o},
    {.name = "gpt3-finnish", .patterns = kBloom},
    {.name = "granite-docling", .patterns = kGpt2},
    {.name = "grok-2", .patterns = kQwen2},
    {.name = "hunyuan", .patterns = kQwen2},
    {.name = "jais", .patterns = kGpt2},
    like_llama3("llama-bpe"),
    like_llama3("llama-v3"),
    like_llama3("llama3"),
    {.name = "llama4", .patterns = kGpt4o},
    {.name = "minerva-7b", .patterns = kDigitsThenGpt2},
    {.name = "minimax-m2", .patterns = kGpt4o},
    {.name = "mpt", .patterns = kGpt2},
    {.name = "olmo", .patterns = kGpt2},
    {.name = "phi-2", .patterns = kGpt2},
    {.name = "poro-chat", .patterns = kBloom},
    {.name = "qwen2", .patterns = kQwen2},
    {.name = "qwen35", .patterns = kQwen35},
    {.name = "refact", .patterns = kDigitsThenGpt2},
    {.name = "seed-coder", .patterns = kSeedCoder},
    {.name = "smaug-bpe", .patterns = kLlama3},
    {.name = "smollm", .patterns = kDigitsThenGpt2},
    {.name = "solar-open", .patterns = kQwen2},
    {.name = "stablelm2", .patterns = kQwen2},
    {.name = "starcoder", .patterns = kDigitsThenGpt2},
    {.name = "tekken", .patterns = kTekken, .prefers_whole_pieces = true},
    {.name = "trillion", .patterns = kGpt2},
    {.name = "viking", .patterns = kViking},
};

}  // namespace

const PreTokenizerKind* find_pre_tokenizer_kind(std::string_view name) {
    for (const PreTokenizerKind& kind : kKinds)
        if (kind.name == name) return &kind;
    return nullptr;
}

std::span<const PreTokenizerKind> pre_tokenizer_kinds() {
    return kKinds;
}

std::string pre_tokenizer_kind_names() {
    std::string names;
    for (const PreTokenizerKind& kind : kKinds) {
        if (!names.empty()) names += ", ";
        names += kind.name;
    }
    return names;
}

}  // namespace artel::text
