// SPDX-License-Identifier: Apache-2.0
// Two small vocabularies made by hand for the tests of this folder.
#pragma once

#include <fmt/core.h>

#include <string>

#include "text/utf8.hpp"
#include "text/vocabulary.hpp"

namespace artel::text {

/// Byte-level BPE: ids 0-255 are the bytes, then merged tokens, then special ones.
struct BpeIds {
    static constexpr TokenId kTh = 256, kThe = 257, kSpaceT = 258, kSpaceThe = 259, kAa = 260,
                             kAaaa = 261, kBos = 262, kEnd = 263, kThink = 264;
};

/// The character that spells a byte in byte-level BPE, written out apart from the code under test.
inline std::string byte_character(unsigned byte) {
    std::string text;
    if ((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD))
        append_utf8(text, byte);
    else if (byte <= 0x20)
        append_utf8(text, 0x100 + byte);
    else if (byte <= 0xA0)
        append_utf8(text, 0x121 + byte - 0x7F);
    else
        append_utf8(text, 0x143);
    return text;
}

inline Vocabulary bpe_vocabulary() {
    Vocabulary vocabulary;
    vocabulary.model = "gpt2";
    vocabulary.pre = "gpt-2";
    for (unsigned byte = 0; byte < 256; ++byte) vocabulary.texts.push_back(byte_character(byte));
    for (const char* text : {"th", "the", "\u0120t", "\u0120the", "aa", "aaaa"})
        vocabulary.texts.push_back(text);
    vocabulary.types.assign(vocabulary.texts.size(), TokenType::Normal);
    for (const char* text : {"<s>", "<|im_end|>"}) {
        vocabulary.texts.push_back(text);
        vocabulary.types.push_back(TokenType::Control);
    }
    vocabulary.texts.push_back("<think>");
    vocabulary.types.push_back(TokenType::UserDefined);
    vocabulary.merges = {"t h", "th e", "\u0120 t", "\u0120 the", "a a", "aa aa"};
    vocabulary.bos = BpeIds::kBos;
    vocabulary.eos = BpeIds::kBos;
    vocabulary.adds_bos = true;
    return vocabulary;
}

/// SentencePiece: ids 0-255 are byte tokens, then pieces ("_" stands for U+2581 here).
struct SpmIds {
    static constexpr TokenId kUnknown = 256, kBos = 257, kEnd = 258, kSpace = 259, kH = 260,
                             kI = 261, kHi = 262, kSpaceHi = 263, kSpaceH = 264, kTwoSpaces = 265,
                             kX = 266, kXX = 267, kXXX = 268;
};

inline Vocabulary spm_vocabulary() {
    Vocabulary vocabulary;
    vocabulary.model = "llama";
    const auto add = [&vocabulary](const std::string& text, TokenType type, float score) {
        vocabulary.texts.push_back(text);
        vocabulary.types.push_back(type);
        vocabulary.scores.push_back(score);
    };
    for (unsigned byte = 0; byte < 256; ++byte)
        add(fmt::format("<0x{:02X}>", byte), TokenType::Byte, 0);
    add("<unk>", TokenType::Unknown, 0);
    add("<s>", TokenType::Control, 0);
    add("</s>", TokenType::Control, 0);
    add("\u2581", TokenType::Normal, -10);
    add("h", TokenType::Normal, -11);
    add("i", TokenType::Normal, -12);
    add("hi", TokenType::Normal, -2);
    add("\u2581hi", TokenType::Normal, -3);
    add("\u2581h", TokenType::Normal, -4);
    add("  ", TokenType::UserDefined, 0);
    add("x", TokenType::Normal, -13);
    add("xx", TokenType::Unused, -1);
    add("xxx", TokenType::Normal, -5);
    vocabulary.unknown = SpmIds::kUnknown;
    vocabulary.bos = SpmIds::kBos;
    vocabulary.eos = SpmIds::kEnd;
    return vocabulary;
}

}  // namespace artel::text
