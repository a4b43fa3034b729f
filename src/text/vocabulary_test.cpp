// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "text/test_vocabularies.hpp"

namespace artel::text {
namespace {

using testing::HasSubstr;

void expect_refused(const Vocabulary& vocabulary, const std::string& words) {
    const Error error = vocabulary.validate();
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(error.message()), HasSubstr(words));
}

TEST(Vocabulary, AcceptsTheTestVocabularies) {
    EXPECT_TRUE(bpe_vocabulary().validate().ok());
    EXPECT_TRUE(spm_vocabulary().validate().ok());
}

TEST(Vocabulary, RefusesArraysOfUnequalLength) {
    Vocabulary types = bpe_vocabulary();
    types.types.resize(100);
    expect_refused(types, "tokenizer.ggml.token_type: 100 entries for 265 tokens");
    Vocabulary scores = spm_vocabulary();
    scores.scores.pop_back();
    expect_refused(scores, "tokenizer.ggml.scores: 268 entries for 269 tokens");
    expect_refused(Vocabulary{}, "there are no tokens");
}

TEST(Vocabulary, RefusesDuplicatesNamingBothIds) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.texts[BpeIds::kThe] = "th";
    expect_refused(vocabulary, "tokens 256 and 257 are both spelled 'th'");
}

TEST(Vocabulary, RefusesIdsOutsideIt) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.bos = 9999;
    expect_refused(vocabulary, "tokenizer.ggml.bos_token_id: 9999 of 265 tokens");
    vocabulary.bos = 265;
    expect_refused(vocabulary, "bos_token_id");
}

TEST(Vocabulary, RefusesMergesThatAreNotTwoParts) {
    for (const char* merge : {"th", "a b c", " th", "th ", ""}) {
        Vocabulary vocabulary = bpe_vocabulary();
        vocabulary.merges[1] = merge;
        expect_refused(vocabulary, "tokenizer.ggml.merges: merge 1");
    }
}

TEST(Vocabulary, RefusesByteTokensWithoutTwoHexDigits) {
    for (const char* text : {"<0x-1>", "<0xZZ>", "<0x1>", "<0x100>", "0x41"}) {
        Vocabulary vocabulary = spm_vocabulary();
        vocabulary.texts[0x41] = text;
        expect_refused(vocabulary, "token 65 is a byte token");
    }
    Vocabulary vocabulary = spm_vocabulary();
    vocabulary.texts[0xAC] = "<0xab>";
    expect_refused(vocabulary, "tokens 171 and 172 are the same byte");
}

TEST(Vocabulary, RefusesUnknownTypesBadScoresAndGiantTokens) {
    Vocabulary types = bpe_vocabulary();
    types.types[7] = static_cast<TokenType>(9);
    expect_refused(types, "token 7 has type 9");
    Vocabulary scores = spm_vocabulary();
    scores.scores[3] = std::numeric_limits<float>::quiet_NaN();
    expect_refused(scores, "the score of token 3");
    Vocabulary giant = bpe_vocabulary();
    giant.texts[2] = std::string(10'000'000, 'x');
    expect_refused(giant, "token 2 has 10000000 bytes");
}

}  // namespace
}  // namespace artel::text
