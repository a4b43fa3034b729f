// SPDX-License-Identifier: Apache-2.0
// Field case C34: characters cut across tokens, and bytes that are no characters.
#include "text/detokenizer.hpp"

#include <gtest/gtest.h>

#include "text/test_vocabularies.hpp"
#include "text/utf8.hpp"

namespace artel::text {
namespace {

std::string stream_bytes(std::initializer_list<std::string_view> parts) {
    Utf8Stream stream;
    std::string text;
    for (const std::string_view part : parts) {
        text += stream.add(part);
        EXPECT_TRUE(is_valid_utf8(text));
    }
    return text + stream.finish();
}

TEST(Utf8Stream, HoldsACutCharacterBack) {
    Utf8Stream stream;
    EXPECT_EQ(stream.add("a\xF0\x9F"), "a");
    EXPECT_EQ(stream.add("\x98"), "");
    EXPECT_EQ(stream.add("\x80!"), "\U0001F600!");
    EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, EveryCutOfACharacterGivesItWhole) {
    for (const std::string whole : {"\u00e9", "\u4e2d", "\U0001F600"})
        for (std::size_t cut = 0; cut <= whole.size(); ++cut)
            EXPECT_EQ(stream_bytes({whole.substr(0, cut), whole.substr(cut)}), whole);
}

TEST(Utf8Stream, ReplacesMaximalSubparts) {
    EXPECT_EQ(stream_bytes({"\xE2\x80\x41"}), "\uFFFDA");
    EXPECT_EQ(stream_bytes({"\xF0\x80\x80\x41"}), "\uFFFD\uFFFD\uFFFDA");
    EXPECT_EQ(stream_bytes({"\xE2", "\x80", "\x41"}), "\uFFFDA");
    EXPECT_EQ(stream_bytes({"x\xE2\x80"}), "x\uFFFD");
}

TEST(Utf8Stream, AllPairsOfBytesGiveValidTextThatDoesNotDependOnTheCut) {
    for (int first = 0; first < 256; ++first)
        for (int second = 0; second < 256; ++second) {
            const std::string both = {static_cast<char>(first), static_cast<char>(second)};
            const std::string once = stream_bytes({both});
            ASSERT_TRUE(is_valid_utf8(once));
            ASSERT_EQ(stream_bytes({both.substr(0, 1), both.substr(1)}), once);
            ASSERT_EQ(once == both, is_valid_utf8(both));
        }
}

TEST(StreamDetokenizer, JoinsByteTokens) {
    const auto tokenizer = *Tokenizer::create(bpe_vocabulary());
    StreamDetokenizer stream(*tokenizer);
    EXPECT_EQ(stream.add(0xE4), "");
    EXPECT_EQ(stream.add(0xB8), "");
    EXPECT_EQ(stream.add(0xAD), "\u4e2d");
    EXPECT_EQ(stream.add(BpeIds::kSpaceThe), " the");
    EXPECT_EQ(stream.add(0xE4), "");
    EXPECT_EQ(stream.finish(), "\uFFFD");
    EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDetokenizer, HidesControlTokensUnlessAsked) {
    const auto tokenizer = *Tokenizer::create(bpe_vocabulary());
    const std::vector<TokenId> ids = {'a', BpeIds::kEnd, BpeIds::kThink, 99'999};
    EXPECT_EQ(detokenize(*tokenizer, ids), "a<think>");
    EXPECT_EQ(detokenize(*tokenizer, ids, {.shows_control = true}), "a<|im_end|><think>");
}

TEST(StreamDetokenizer, DropsTheSpaceInFrontOnlyAtTheStartOfAText) {
    const auto tokenizer = *Tokenizer::create(spm_vocabulary());
    const std::vector<TokenId> ids = {SpmIds::kBos, SpmIds::kSpaceHi, SpmIds::kSpaceHi};
    EXPECT_EQ(detokenize(*tokenizer, ids, {.starts_text = true}), "hi hi");
    EXPECT_EQ(detokenize(*tokenizer, ids, {.starts_text = false}), " hi hi");
}

}  // namespace
}  // namespace artel::text
