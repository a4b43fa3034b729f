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
#define ARTEL_LLAMA3(numbers)                                           \
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" numbers \
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr std::array kGpt2 = {ARTEL_GPT2};
constexpr std::array kDigitsThenGpt2 = {R"(\p{N})", ARTEL_GPT2};
constexpr std::array kLlama3 = {ARTEL_LLAMA3(R"(\p{N}{1,3})")};
constexpr std::array kQwen2 = {ARTEL_LLAMA3(R"(\p{N})")};
constexpr std::array kDeepseekCoder = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                       R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
                                       R"(\p{N})"};

constexpr PreTokenizerKind kKinds[] = {
    {.name = "deepseek-coder", .patterns = kDeepseekCoder},
    {.name = "gpt-2", .patterns = kGpt2},
    {.name = "llama-bpe", .patterns = kLlama3, .adds_bos = true, .prefers_whole_pieces = true},
    {.name = "llama-v3", .patterns = kLlama3, .adds_bos = true, .prefers_whole_pieces = true},
    {.name = "llama3", .patterns = kLlama3, .adds_bos = true, .prefers_whole_pieces = true},
    {.name = "qwen2", .patterns = kQwen2},
    {.name = "smollm", .patterns = kDigitsThenGpt2},
    {.name = "starcoder", .patterns = kDigitsThenGpt2},
};

}  // namespace

const PreTokenizerKind* find_pre_tokenizer_kind(std::string_view name) {
    for (const PreTokenizerKind& kind : kKinds)
        if (kind.name == name) return &kind;
    return nullptr;
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
