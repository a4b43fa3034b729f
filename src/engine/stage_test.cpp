// SPDX-License-Identifier: Apache-2.0
// Stage::run refuses every wrong part of a step before it computes. (That the answers are right is
// the business of tests/property and of the oracle.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "engine/stage.hpp"
#include "quant/type_names.hpp"

namespace artel::engine {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kWidth = 32;
constexpr std::uint32_t kVocabulary = 260;
const std::string kModel = ARTEL_SOURCE_DIR "/tests/data/gguf/ok_base.gguf";  // one llama layer

class StageTest : public testing::Test {
  protected:
    void SetUp() override {
        auto index = gguf::GgufIndex::open(kModel, quant::block_size_of);
        ASSERT_TRUE(index.ok()) << index.status();
        index_ = std::make_unique<gguf::GgufIndex>(*std::move(index));
        auto backend = backends::create_backend("reference", {});
        ASSERT_TRUE(backend.ok()) << backend.status();
        backend_ = *std::move(backend);
    }
    Result<std::unique_ptr<Stage>> create(const StageOptions& options) {
        ARTEL_ASSIGN(FileWeightSource source, FileWeightSource::open(*index_));
        return Stage::create(*index_, options, *backend_, source);
    }
    static StageOptions options(bool has_input, bool has_output) {
        return {.parts = {.layers = {.first = 0, .count = 1},
                          .has_input = has_input,
                          .has_output = has_output},
                .state_type = graph::StateType::F16,
                .rows_max = {.step = 4, .logits = 2},
                .context = 64,
                .pages = {3}};
    }
    /// Two tokens of one sequence.
    static StageBatch batch() {
        StageBatch step;
        step.sequences = {0, 0};
        step.positions = {0, 1};
        step.tokens = {5, 6};
        step.logit_rows = {1};
        step.page_tables = {{.first_page = 0, .pages = {2}}};
        return step;
    }
    std::string refusal(Stage& stage, const std::function<void(StageBatch&)>& spoil) {
        StageBatch step = batch();
        if (!stage.options().parts.has_input)
            step.activations = to_bytes(std::vector<float>(2 * kWidth, 0.5F));
        spoil(step);
        const auto result = stage.run(step);
        return result.ok() ? "accepted" : std::string(result.status().message());
    }

    std::unique_ptr<gguf::GgufIndex> index_;
    std::unique_ptr<backends::Backend> backend_;
};

TEST_F(StageTest, GivesLogitsOfTheRowsThatWantThem) {
    const auto stage = create(options(true, true));
    ASSERT_TRUE(stage.ok()) << stage.status();
    const auto result = (*stage)->run(batch());
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->logits.size(), kVocabulary);
    EXPECT_TRUE(result->activations.empty());
    StageBatch silent = batch();
    silent.logit_rows.clear();
    const auto none = (*stage)->run(silent);
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_TRUE(none->logits.empty());
}

TEST_F(StageTest, RefusesWrongRowsTokensAndPages) {
    const auto made = create(options(true, true));
    ASSERT_TRUE(made.ok()) << made.status();
    Stage& stage = **made;
    const auto refuses = [&](const std::function<void(StageBatch&)>& spoil) {
        return refusal(stage, spoil);
    };
    EXPECT_EQ(refuses([](StageBatch&) {}), "accepted");
    EXPECT_THAT(refuses([](StageBatch& b) { b = {}; }), HasSubstr("0 rows"));
    EXPECT_THAT(refuses([](StageBatch& b) {
                    b.positions = {0, 1, 2, 3, 4};
                    b.sequences = {0, 0, 0, 0, 0};
                    b.tokens = {1, 1, 1, 1, 1};
                }),
                HasSubstr("5 rows"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.sequences.pop_back(); }), HasSubstr("sequences"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.sequences[1] = 1; }), HasSubstr("sequence 1"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.tokens.clear(); }), HasSubstr("tokens"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.tokens[0] = kVocabulary; }), HasSubstr("token 260"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.positions = {63, 64}; }), HasSubstr("position 64"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.positions = {1, 0}; }), HasSubstr("position 0"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.logit_rows = {2}; }), HasSubstr("logit row 2"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.logit_rows = {1, 0}; }), HasSubstr("logit row"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.logit_rows = {0, 1, 1}; }), HasSubstr("logits"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.page_tables.clear(); }), HasSubstr("page tables"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.page_tables[0].pages = {3}; }), HasSubstr("page 3"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.page_tables[0].pages = {}; }), HasSubstr("pages"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.page_tables[0].first_page = 0xFFFFFFFF; }),
                HasSubstr("pages"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.page_copies = {{1, 0, 1}}; }), HasSubstr("group 1"));
    EXPECT_THAT(refuses([](StageBatch& b) { b.page_copies = {{0, 0, 3}}; }), HasSubstr("page 0"));
    EXPECT_EQ(refuses([](StageBatch&) {}), "accepted");
}

TEST_F(StageTest, RefusesWrongActivations) {
    const auto made = create(options(false, true));
    ASSERT_TRUE(made.ok()) << made.status();
    const auto refuses = [&](std::vector<float> values) {
        return refusal(**made, [&](StageBatch& b) { b.activations = to_bytes(values); });
    };
    EXPECT_EQ(refuses(std::vector<float>(2 * kWidth, 1)), "accepted");
    EXPECT_THAT(refuses(std::vector<float>(2 * kWidth - 1, 1)), HasSubstr("252 bytes"));
    EXPECT_THAT(refuses({}), HasSubstr("0 bytes"));
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> values(2 * kWidth, 1);
        values.back() = bad;
        EXPECT_THAT(refuses(values), HasSubstr("activations hold"));
    }
}

TEST_F(StageTest, GoesOnFromACopiedPage) {
    const auto made = create(options(true, true));
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE((*made)->run(batch()).ok());
    StageBatch next;
    next.sequences = {0};
    next.positions = {2};
    next.tokens = {7};
    next.logit_rows = {0};
    next.page_tables = {{.first_page = 0, .pages = {2}}};
    const auto original = (*made)->run(next);
    next.page_tables[0].pages = {0};
    next.page_copies = {{.group = 0, .source = 2, .target = 0}};
    const auto copied = (*made)->run(next);
    ASSERT_TRUE(original.ok() && copied.ok());
    EXPECT_EQ(original->logits, copied->logits);
    next.page_tables[0].pages = {1};
    next.page_copies.clear();
    next.positions = {0};
    const auto alone = (*made)->run(next);
    ASSERT_TRUE(alone.ok());
    EXPECT_NE(alone->logits, copied->logits);
}

TEST_F(StageTest, IsNotMadeForNothing) {
    StageOptions none = options(true, true);
    none.rows_max = {.step = 0, .logits = 0};
    EXPECT_THAT(std::string(create(none).status().message()), HasSubstr("0 rows"));
    none = options(true, true);
    none.pages = {};
    EXPECT_THAT(std::string(create(none).status().message()), HasSubstr("state groups"));
}

TEST_F(StageTest, ReportsASourceThatFails) {
    class BrokenSource final : public WeightSource {
        Error read(std::string_view tensor, std::uint64_t, std::span<std::byte>) override {
            return unavailable("{}: the link is gone", tensor);
        }
    } source;
    const auto stage = Stage::create(*index_, options(true, true), *backend_, source);
    EXPECT_EQ(stage.status().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace artel::engine
