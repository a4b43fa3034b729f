// SPDX-License-Identifier: Apache-2.0
// Vocabulary::from_metadata: field case C08, metadata that contradict themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "gguf/gguf_index.hpp"
#include "gguf/gguf_writer.hpp"
#include "text/chat_template.hpp"
#include "text/test_vocabularies.hpp"
#include "text/tokenizer.hpp"

namespace artel::text {
namespace {

using testing::HasSubstr;

/// The BPE vocabulary as a file; `change` may add to it or leave things out by name.
class VocabularyFile {
  public:
    VocabularyFile& without(std::string_view key) {
        left_out_.emplace_back(key);
        return *this;
    }
    template <class T>
    VocabularyFile& with(std::string_view key, T value) {
        without(key);
        writer_.add_metadata(key, value);
        return *this;
    }
    template <class T>
    VocabularyFile& with_array(std::string_view key, const std::vector<T>& values) {
        without(key);
        writer_.add_metadata_array(key, values);
        return *this;
    }

    Result<gguf::GgufIndex> open() {
        const Vocabulary vocabulary = bpe_vocabulary();
        const auto views = [](const std::vector<std::string>& texts) {
            return std::vector<std::string_view>(texts.begin(), texts.end());
        };
        std::vector<std::int32_t> types;
        for (const TokenType type : vocabulary.types) types.push_back(static_cast<int>(type));
        add("tokenizer.ggml.model", std::string_view("gpt2"));
        add("tokenizer.ggml.pre", std::string_view("gpt-2"));
        add("tokenizer.ggml.bos_token_id", BpeIds::kBos);
        add("tokenizer.ggml.add_bos_token", true);
        add_array("tokenizer.ggml.tokens", views(vocabulary.texts));
        add_array("tokenizer.ggml.token_type", types);
        add_array("tokenizer.ggml.merges", views(vocabulary.merges));
        const auto bytes = writer_.to_bytes();
        const std::span<const std::byte> shard = bytes;
        return gguf::GgufIndex::parse(std::span(&shard, 1), [](std::uint32_t) {
            return Result<BlockSize>(BlockSize{.elements = 1, .bytes = 1});
        });
    }

    Result<std::unique_ptr<Tokenizer>> tokenizer() {
        ARTEL_ASSIGN(const gguf::GgufIndex index, open());
        return Tokenizer::create(index.metadata());
    }

  private:
    bool is_left_out(std::string_view key) const {
        return std::ranges::find(left_out_, key) != left_out_.end();
    }
    template <class T>
    void add(std::string_view key, T value) {
        if (!is_left_out(key)) writer_.add_metadata(key, value);
    }
    template <class T>
    void add_array(std::string_view key, const std::vector<T>& values) {
        if (!is_left_out(key)) writer_.add_metadata_array(key, values);
    }

    gguf::GgufWriter writer_;
    std::vector<std::string> left_out_;
};

void expect_refused(VocabularyFile& file, const std::string& words) {
    const auto tokenizer = file.tokenizer();
    ASSERT_FALSE(tokenizer.ok()) << words;
    EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(words));
}

TEST(VocabularyMetadata, ReadsAFile) {
    const auto tokenizer = VocabularyFile().tokenizer();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    EXPECT_EQ((*tokenizer)->vocabulary_size(), 265U);
    EXPECT_EQ((*tokenizer)->bos(), BpeIds::kBos);
    EXPECT_TRUE((*tokenizer)->adds_bos());
    EXPECT_EQ((*tokenizer)->eos(), std::nullopt);
    EXPECT_THAT((*tokenizer)->tokenize("the", {}), testing::ElementsAre(BpeIds::kThe));
}

TEST(VocabularyMetadata, TheLargestNumberMeansNoToken) {
    const auto tokenizer =
        VocabularyFile().with("tokenizer.ggml.bos_token_id", std::uint32_t{0xFFFFFFFF}).tokenizer();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    EXPECT_EQ((*tokenizer)->bos(), std::nullopt);
    EXPECT_FALSE((*tokenizer)->adds_bos());
}

TEST(VocabularyMetadata, RefusesWhatContradictsItselfNamingTheKey) {
    expect_refused(VocabularyFile().without("tokenizer.ggml.model"), "tokenizer.ggml.model");
    expect_refused(VocabularyFile().without("tokenizer.ggml.tokens"), "tokenizer.ggml.tokens");
    expect_refused(VocabularyFile().without("tokenizer.ggml.pre"), "tokenizer.ggml.pre is missing");
    expect_refused(VocabularyFile().with("tokenizer.ggml.eos_token_id", std::uint32_t{265}),
                   "tokenizer.ggml.eos_token_id: 265 of 265 tokens");
    expect_refused(VocabularyFile().with("tokenizer.ggml.eos_token_id", std::string_view("x")),
                   "tokenizer.ggml.eos_token_id");
    expect_refused(VocabularyFile().with("tokenizer.ggml.add_bos_token", std::uint32_t{1}),
                   "tokenizer.ggml.add_bos_token");
    expect_refused(
        VocabularyFile().with_array("tokenizer.ggml.tokens", std::vector<std::uint32_t>{1, 2, 3}),
        "tokenizer.ggml.tokens");
    expect_refused(
        VocabularyFile().with_array("tokenizer.ggml.token_type", std::vector<std::int32_t>(264, 1)),
        "tokenizer.ggml.token_type: 264 entries for 265 tokens");
    expect_refused(
        VocabularyFile().with_array("tokenizer.ggml.token_type", std::vector<std::int32_t>(265, 7)),
        "token 0 has type 7");
    expect_refused(VocabularyFile()
                       .with("tokenizer.ggml.model", std::string_view("llama"))
                       .with_array("tokenizer.ggml.scores", std::vector<std::uint8_t>(265, 1)),
                   "tokenizer.ggml.scores");
    expect_refused(
        VocabularyFile().with_array("tokenizer.ggml.merges", std::vector<std::string_view>{"th"}),
        "tokenizer.ggml.merges: merge 0");
}

TEST(VocabularyMetadata, SaysWhetherThereIsAChatTemplate) {
    EXPECT_EQ(*chat_template_text(VocabularyFile().open()->metadata()), std::nullopt);
    const auto index =
        VocabularyFile().with("tokenizer.chat_template", std::string_view("x")).open();
    EXPECT_EQ(*chat_template_text(index->metadata()), "x");
}

}  // namespace
}  // namespace artel::text
