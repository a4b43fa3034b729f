// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "base/random.hpp"
#include "text/detokenizer.hpp"
#include "text/test_vocabularies.hpp"

namespace artel::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Tokenizer> make(Vocabulary vocabulary) {
    auto tokenizer = Tokenizer::create(std::move(vocabulary));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    return *std::move(tokenizer);
}

constexpr TokenizeOptions kSpecial{.special = ParseSpecial::Yes};

TEST(BpeTokenizer, MergesTheBestPairFirst) {
    const auto tokenizer = make(bpe_vocabulary());
    // "the the": the space joins "the" before "t" only because "t h" and "th e" come first.
    EXPECT_THAT(tokenizer->tokenize("the the", {}), ElementsAre(BpeIds::kThe, BpeIds::kSpaceThe));
    EXPECT_THAT(tokenizer->tokenize(" t", {}), ElementsAre(BpeIds::kSpaceT));
    EXPECT_THAT(tokenizer->tokenize("", {}), ElementsAre());
}

TEST(BpeTokenizer, MergesEqualPairsFromTheLeft) {
    const auto tokenizer = make(bpe_vocabulary());
    EXPECT_THAT(tokenizer->tokenize("aaa", {}), ElementsAre(BpeIds::kAa, 'a'));
    EXPECT_THAT(tokenizer->tokenize("aaaaa", {}), ElementsAre(BpeIds::kAaaa, 'a'));
}

TEST(BpeTokenizer, PiecesDoNotMergeWithEachOther) {
    // GPT-2 cuts before a digit, so 'a' on both sides stays apart.
    EXPECT_THAT(make(bpe_vocabulary())->tokenize("a1a", {}), ElementsAre('a', '1', 'a'));
}

TEST(BpeTokenizer, DigitsAreCutOneByOneWhereTheKindSaysSo) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.texts.push_back("11");
    vocabulary.types.push_back(TokenType::Normal);
    vocabulary.merges.push_back("1 1");
    EXPECT_THAT(make(vocabulary)->tokenize("11", {}), ElementsAre(265));
    vocabulary.pre = "smollm";
    EXPECT_THAT(make(vocabulary)->tokenize("11", {}), ElementsAre('1', '1'));
}

TEST(BpeTokenizer, APieceThatIsATokenNeedsNoMergeWhereTheKindSaysSo) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.texts.push_back("whole");
    vocabulary.types.push_back(TokenType::Normal);
    EXPECT_EQ(make(vocabulary)->tokenize("whole", {}).size(), 5U);
    vocabulary.pre = "llama-bpe";
    EXPECT_THAT(make(vocabulary)->tokenize("whole", {}), ElementsAre(265));
}

TEST(BpeTokenizer, AByteWithoutATokenIsLeftOutOrReplaced) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.texts[0x04] = "unusual";
    vocabulary.texts[0xFF] = "unusual too";
    const auto tokenizer = make(vocabulary);
    EXPECT_THAT(tokenizer->tokenize("a\x04z", {}), ElementsAre('a', 'z'));
    EXPECT_THAT(tokenizer->tokenize("a\xFFz", {}), ElementsAre('a', 0xEF, 0xBF, 0xBD, 'z'));
}

TEST(BpeTokenizer, RefusesPreTokenizersThatItDoesNotKnow) {
    Vocabulary vocabulary = bpe_vocabulary();
    for (const char* name : {"default", "no-such-kind"}) {
        vocabulary.pre = name;
        const Error error = Tokenizer::create(vocabulary).status();
        EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
        EXPECT_THAT(std::string(error.message()), HasSubstr(name));
        EXPECT_THAT(std::string(error.message()), HasSubstr("llama-bpe"));
    }
    vocabulary.pre.clear();
    EXPECT_THAT(std::string(Tokenizer::create(vocabulary).status().message()),
                HasSubstr("tokenizer.ggml.pre is missing"));
    vocabulary.model = "rwkv";
    EXPECT_THAT(std::string(Tokenizer::create(vocabulary).status().message()),
                HasSubstr("'rwkv' is not supported"));
}

TEST(BpeTokenizer, RefusesAMergeOfUnknownTokens) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.merges.push_back("q q");
    EXPECT_THAT(std::string(Tokenizer::create(vocabulary).status().message()),
                HasSubstr("merge 6: 'qq' is not a token"));
}

TEST(BpeTokenizer, MergingNeverYieldsAControlToken) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.texts.push_back("zz");
    vocabulary.types.push_back(TokenType::Control);
    vocabulary.merges.push_back("z z");
    EXPECT_THAT(make(vocabulary)->tokenize("zz", {}), ElementsAre('z', 'z'));
}

TEST(SpmTokenizer, MergesByScoreWithASpaceInFront) {
    const auto tokenizer = make(spm_vocabulary());
    EXPECT_THAT(tokenizer->tokenize("hi", {}), ElementsAre(SpmIds::kSpaceHi));
    EXPECT_THAT(tokenizer->tokenize("hi hi", {}), ElementsAre(SpmIds::kSpaceHi, SpmIds::kSpaceHi));
    EXPECT_THAT(tokenizer->tokenize("", {}), ElementsAre());
    Vocabulary no_prefix = spm_vocabulary();
    no_prefix.adds_space_prefix = false;
    EXPECT_THAT(make(no_prefix)->tokenize("hi", {}), ElementsAre(SpmIds::kHi));
}

TEST(SpmTokenizer, CharactersWithoutATokenFallBackToBytes) {
    const auto tokenizer = make(spm_vocabulary());
    EXPECT_THAT(tokenizer->tokenize("é\xFF", {}), ElementsAre(SpmIds::kSpace, 0xC3, 0xA9, 0xFF));
}

TEST(SpmTokenizer, UnusedTokensAreTakenApartAgain) {
    Vocabulary vocabulary = spm_vocabulary();
    vocabulary.adds_space_prefix = false;
    const auto tokenizer = make(vocabulary);
    EXPECT_THAT(tokenizer->tokenize("xx", {}), ElementsAre(SpmIds::kX, SpmIds::kX));
    EXPECT_THAT(tokenizer->tokenize("xxx", {}), ElementsAre(SpmIds::kXXX));
}

TEST(SpmTokenizer, MergingNeverYieldsAControlToken) {
    Vocabulary vocabulary = spm_vocabulary();
    for (const char* text : {"<", "s", ">", "<s"}) {
        vocabulary.texts.push_back(text);
        vocabulary.types.push_back(TokenType::Normal);
        vocabulary.scores.push_back(-1);
    }
    EXPECT_THAT(make(vocabulary)->tokenize("<s>", {}), ElementsAre(SpmIds::kSpace, 272, 271));
}

TEST(Tokenizer, ControlTokensAreParsedOnlyWhereTheCallerSaysSo) {
    const auto tokenizer = make(bpe_vocabulary());
    EXPECT_THAT(tokenizer->tokenize("a<|im_end|>b", kSpecial), ElementsAre('a', BpeIds::kEnd, 'b'));
    const auto plain = tokenizer->tokenize("a<|im_end|>b", {});
    EXPECT_EQ(plain.size(), 12U);
    EXPECT_EQ(std::ranges::count(plain, BpeIds::kEnd), 0);
}

TEST(Tokenizer, UserDefinedTokensAreAlwaysMatched) {
    const auto tokenizer = make(bpe_vocabulary());
    EXPECT_THAT(tokenizer->tokenize("a<think>b", {}), ElementsAre('a', BpeIds::kThink, 'b'));
}

TEST(Tokenizer, TheLongestSpecialTokenWins) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.texts.push_back("<think>!");
    vocabulary.types.push_back(TokenType::Control);
    const auto tokenizer = make(vocabulary);
    EXPECT_THAT(tokenizer->tokenize("<think>!", kSpecial), ElementsAre(265));
    EXPECT_THAT(tokenizer->tokenize("<think>!", {}), ElementsAre(BpeIds::kThink, '!'));
}

TEST(Tokenizer, AControlTokenMustLieWithinTextThatParsesIt) {
    const auto tokenizer = make(bpe_vocabulary());
    const auto ends = [&](std::vector<PromptSegment> segments) {
        return std::ranges::count(tokenizer->tokenize(segments, AddBos::No), BpeIds::kEnd);
    };
    const auto yes = ParseSpecial::Yes;
    const auto no = ParseSpecial::No;
    EXPECT_EQ(ends({{"<|im_end|>", yes}}), 1);
    EXPECT_EQ(ends({{"<|im", yes}, {"_end|>", yes}}), 1);
    EXPECT_EQ(ends({{"<|im_end|>", no}}), 0);
    EXPECT_EQ(ends({{"<|im_end|", yes}, {">", no}}), 0);
    EXPECT_EQ(ends({{"<", no}, {"|im_end|>", yes}}), 0);
    EXPECT_EQ(ends({{"<|im", yes}, {"_", no}, {"end|>", yes}}), 0);
    EXPECT_EQ(ends({{"<|im_end|>", no}, {"<|im_end|>", yes}}), 1);
}

TEST(Tokenizer, MergesCrossTheBordersOfSegments) {
    const auto tokenizer = make(bpe_vocabulary());
    const std::vector<PromptSegment> segments = {{"t", ParseSpecial::Yes},
                                                 {"he", ParseSpecial::No}};
    EXPECT_THAT(tokenizer->tokenize(segments, AddBos::No), ElementsAre(BpeIds::kThe));
}

TEST(Tokenizer, ExactlyOneBosIfTheModelSaysSo) {
    const TokenizeOptions options{.special = ParseSpecial::Yes, .bos = AddBos::IfModelSays};
    auto tokenizer = make(bpe_vocabulary());
    EXPECT_THAT(tokenizer->tokenize("a", options), ElementsAre(BpeIds::kBos, 'a'));
    EXPECT_THAT(tokenizer->tokenize("<s>a", options), ElementsAre(BpeIds::kBos, 'a'));
    EXPECT_THAT(tokenizer->tokenize("", options), ElementsAre(BpeIds::kBos));
    Vocabulary without = bpe_vocabulary();
    without.adds_bos = false;
    EXPECT_THAT(make(without)->tokenize("a", options), ElementsAre('a'));
    without.adds_bos.reset();  // gpt-2 does not by default, llama-bpe does
    EXPECT_FALSE(make(without)->adds_bos());
    without.pre = "llama-bpe";
    EXPECT_TRUE(make(without)->adds_bos());
    without.bos.reset();
    EXPECT_FALSE(make(without)->adds_bos());
}

TEST(Tokenizer, EndOfGenerationIsASet) {
    Vocabulary vocabulary = bpe_vocabulary();
    vocabulary.eot = 'q';
    EXPECT_THAT(make(vocabulary)->end_of_generation(),
                ElementsAre('q', BpeIds::kBos, BpeIds::kEnd));
    // A well-known spelling counts only if the token is a control token.
    vocabulary.types[BpeIds::kEnd] = TokenType::UserDefined;
    EXPECT_THAT(make(vocabulary)->end_of_generation(), ElementsAre('q', BpeIds::kBos));
}

/// Field case C88: models have several end tokens, and files name one of them, or a wrong one.
TEST(Tokenizer, EveryFamilysEndTokensEndAGeneration) {
    const std::vector<std::vector<const char*>> families = {
        {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"},         // Llama 3
        {"<|im_end|>", "<|endoftext|>"},                         // ChatML, Qwen
        {"<end_of_turn>", "<eos>"},                              // Gemma
        {"<|return|>", "<|call|>", "<|endoftext|>"},             // gpt-oss
        {"<|end|>", "<|endoftext|>"},                            // Phi 3
        {"<\uFF5Cend\u2581of\u2581sentence\uFF5C>", "<|EOT|>"},  // DeepSeek
        {"<|END_OF_TURN_TOKEN|>"},                               // Command R
        {"[e~["},                                                // MiniMax
        {"<|endofturn|>"},                                       // HyperCLOVA, EXAONE
    };
    for (const auto& family : families) {
        Vocabulary vocabulary = bpe_vocabulary();
        vocabulary.eos = 'x';  // the file is wrong
        vocabulary.types[BpeIds::kEnd] = TokenType::Normal;
        vocabulary.texts[BpeIds::kEnd] = "not an end";
        std::set<TokenId> expected = {'x'};
        for (const char* spelling : family) {
            expected.insert(static_cast<TokenId>(vocabulary.texts.size()));
            vocabulary.texts.push_back(spelling);
            vocabulary.types.push_back(TokenType::Control);
        }
        const auto tokenizer = make(vocabulary);
        EXPECT_EQ(tokenizer->end_of_generation(), expected) << family[0];
        for (const TokenId id : expected) {
            if (id == 'x') continue;
            EXPECT_EQ(tokenizer->token_bytes(id), "") << "an end is never shown";
        }
    }
}

/// Fill-in-the-middle tokens steer the model as turns do: typed by a user, they are text.
TEST(Tokenizer, TypedFillInTheMiddleTokensStayText) {
    Vocabulary vocabulary = bpe_vocabulary();
    const std::vector<std::string> spellings = {"<|fim_prefix|>", "<fim_suffix>", "[MIDDLE]"};
    for (const std::string& spelling : spellings) {
        vocabulary.texts.push_back(spelling);
        vocabulary.types.push_back(TokenType::Control);
    }
    const auto tokenizer = make(vocabulary);
    for (const std::string& spelling : spellings) {
        for (const TokenId id : tokenizer->tokenize("a" + spelling, {}))
            EXPECT_FALSE(tokenizer->is_control(id)) << spelling;
        EXPECT_EQ(tokenizer->tokenize(spelling, kSpecial).size(), 1U) << spelling;
    }
}

TEST(Tokenizer, BytesOfTokens) {
    const auto bpe = make(bpe_vocabulary());
    EXPECT_EQ(bpe->token_bytes(BpeIds::kSpaceThe), " the");
    EXPECT_EQ(bpe->token_bytes(0xAD), "\xAD");
    EXPECT_EQ(bpe->token_bytes(BpeIds::kEnd), "");
    EXPECT_EQ(bpe->token_spelling(BpeIds::kEnd), "<|im_end|>");
    EXPECT_EQ(bpe->token_bytes(0xFFFFFFFF), "");
    EXPECT_EQ(bpe->token_spelling(265), "");
    const auto spm = make(spm_vocabulary());
    EXPECT_EQ(spm->token_bytes(SpmIds::kSpaceHi), " hi");
    EXPECT_EQ(spm->token_bytes(0x41), "A");
}

TEST(Tokenizer, AnyBytesComeBackWhereTheVocabularyHasThemAll) {
    const auto bpe = make(bpe_vocabulary());
    const auto spm = make(spm_vocabulary());
    Random random(20260314);
    for (int round = 0; round < 2'000; ++round) {
        std::string bytes;
        const std::uint64_t count = random.below(40);
        for (std::uint64_t i = 0; i < count; ++i)
            bytes += random.chance(0.5) ? std::string(1, "the aix<s>"[random.below(10)])
                                        : std::string(1, static_cast<char>(random.below(256)));
        for (const Tokenizer* tokenizer : {bpe.get(), spm.get()}) {
            std::string back;
            for (const TokenId id : tokenizer->tokenize(bytes, {}))
                back += tokenizer->token_bytes(id);
            if (tokenizer->adds_space_prefix() && !bytes.empty() && !bytes.starts_with("  "))
                back.erase(0, 1);
            else if (tokenizer->adds_space_prefix() && bytes.starts_with("  "))
                continue;  // a user-defined token comes first: no space in front of it
            if (tokenizer->adds_space_prefix() && bytes.find("  ") != std::string::npos)
                continue;  // the text behind "  " gets a space in front
            ASSERT_EQ(back, bytes) << "round " << round;
        }
    }
}

TEST(Tokenizer, LongRunsTakeAboutLinearTime) {
    // A quadratic merge takes minutes for these, a recursive one crashes.
    const auto bpe = make(bpe_vocabulary());
    const auto spm = make(spm_vocabulary());
    for (const std::string unit : {"a", " ", "\n", ".", "\u4e2d", "\"us\"", "<", "\xFF", "x"}) {
        std::string text;
        while (text.size() < 100'000) text += unit;
        for (const Tokenizer* tokenizer : {bpe.get(), spm.get()}) {
            const std::clock_t start = std::clock();  // of this process, not of the wall
            EXPECT_GE(tokenizer->tokenize(text, kSpecial).size(), 1U);
            EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC) << unit;
        }
    }
}

}  // namespace
}  // namespace artel::text
