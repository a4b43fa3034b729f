// SPDX-License-Identifier: Apache-2.0
// A sequence's logits depend on its own tokens alone: not on where the model is split, on how the
// prompt was cut, on batch mates, on threads or on the instruction set. Bit for bit, for every
// architecture and backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backends/registry.hpp"
#include "base/random.hpp"
#include "engine/stage_chain.hpp"
#include "models/architecture.hpp"
#include "support/tiny_model.hpp"

namespace artel::engine {
namespace {

using test::TinyModel;

constexpr std::uint32_t kTokens = 200;  // over three pages, and past the window of 96

std::vector<TokenId> random_tokens(std::uint64_t seed, std::uint32_t count) {
    Random random(seed);
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random.below(96));
    return tokens;
}

struct Cut {
    std::vector<std::uint32_t> split;
    std::uint32_t chunk = 64;
    std::uint32_t sequences = 1;
    graph::StateType state_type = graph::StateType::F16;
};

class SameAnswer : public testing::TestWithParam<std::tuple<std::string, std::string>> {
  protected:
    void SetUp() override {
        model_ = TinyModel::create(std::get<0>(GetParam()));
        backend_ = make_backend({});
    }
    std::unique_ptr<backends::Backend> make_backend(const backends::BackendOptions& options) {
        auto backend = backends::create_backend(std::get<1>(GetParam()), options);
        EXPECT_TRUE(backend.ok()) << backend.status();
        return *std::move(backend);
    }
    StageChain make_chain(backends::Backend& backend, const Cut& cut) {
        auto source = model_->source();
        auto chain = StageChain::create(model_->index(),
                                        {.split = cut.split,
                                         .state_type = cut.state_type,
                                         .context = 256,
                                         .rows_max = 256,
                                         .sequences = cut.sequences},
                                        backend, source);
        EXPECT_TRUE(chain.ok()) << chain.status();
        return *std::move(chain);
    }
    /// Logits of all positions: (tokens, vocabulary).
    std::vector<float> all_logits(backends::Backend& backend, const std::vector<TokenId>& tokens,
                                  const Cut& cut) {
        StageChain chain = make_chain(backend, cut);
        std::vector<float> logits;
        const Error error = chain.feed({.sequence = 0, .tokens = tokens, .wants_all_logits = true},
                                       cut.chunk, [&](std::span<const float> rows) {
                                           logits.insert(logits.end(), rows.begin(), rows.end());
                                           return ok();
                                       });
        EXPECT_TRUE(error.ok()) << error;
        return logits;
    }
    std::vector<float> all_logits(const std::vector<TokenId>& tokens, const Cut& cut) {
        return all_logits(*backend_, tokens, cut);
    }

    std::unique_ptr<TinyModel> model_;
    std::unique_ptr<backends::Backend> backend_;
};

TEST_P(SameAnswer, WhereverTheModelIsSplit) {
    const auto tokens = random_tokens(1, kTokens);
    const auto whole = all_logits(tokens, {});
    ASSERT_EQ(whole.size(), std::size_t{kTokens} * 96);
    const std::vector<std::vector<std::uint32_t>> splits = {
        {1, 3}, {2, 2}, {3, 1}, {1, 1, 1, 1}, {0, 4}, {4, 0}, {0, 2, 2, 0}};
    for (const auto& split : splits) {
        SCOPED_TRACE(testing::PrintToString(split));
        EXPECT_TRUE(all_logits(tokens, {.split = split}) == whole);
    }
}

TEST_P(SameAnswer, HoweverThePromptIsCut) {
    const auto tokens = random_tokens(2, kTokens);
    const auto whole = all_logits(tokens, {.split = {}, .chunk = kTokens});
    for (const std::uint32_t chunk : {1U, 7U, 63U, 64U, 65U})
        EXPECT_TRUE(all_logits(tokens, {.split = {1, 3}, .chunk = chunk}) == whole) << chunk;
}

TEST_P(SameAnswer, WhoeverElseIsInTheBatch) {
    const auto tokens = random_tokens(3, kTokens);
    const auto alone = all_logits(tokens, {});
    StageChain chain = make_chain(*backend_, {.split = {2, 2}, .sequences = 3});
    const auto mate_a = random_tokens(4, kTokens);
    const auto mate_b = random_tokens(5, kTokens);
    Random random(6);
    std::vector<float> together;
    const std::span<const TokenId> all = tokens;
    std::uint32_t done = 0;
    while (done < kTokens) {
        const auto count = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(1 + random.below(20), kTokens - done));
        const auto mates = static_cast<std::uint32_t>(1 + random.below(3));
        std::vector<SequenceTokens> rows;
        for (const std::uint32_t mate : {0U, 2U}) {
            const std::vector<TokenId>& own = mate == 0 ? mate_a : mate_b;
            if (chain.length(mate) + mates > kTokens) chain.drop(mate);
            rows.push_back({.sequence = mate,
                            .tokens = std::span(own).subspan(chain.length(mate), mates),
                            .wants_all_logits = false});
        }
        rows.insert(rows.begin() + 1,
                    {.sequence = 1, .tokens = all.subspan(done, count), .wants_all_logits = true});
        const auto logits = chain.step(rows);
        ASSERT_TRUE(logits.ok()) << logits.status();
        ASSERT_EQ(logits->size(), (count + 2) * std::size_t{96});
        together.insert(together.end(), logits->begin() + 96, logits->end() - 96);
        done += count;
    }
    EXPECT_TRUE(together == alone);
}

TEST_P(SameAnswer, OnPagesThatHeldAnotherSequence) {
    const auto tokens = random_tokens(7, kTokens);
    const auto fresh = all_logits(tokens, {});
    StageChain chain = make_chain(*backend_, {});
    const auto ignore = [](std::span<const float>) { return ok(); };
    const auto other = random_tokens(8, 250);
    ASSERT_TRUE(
        chain.feed({.sequence = 0, .tokens = other, .wants_all_logits = false}, 64, ignore).ok());
    chain.drop(0);
    std::vector<float> again;
    ASSERT_TRUE(chain
                    .feed({.sequence = 0, .tokens = tokens, .wants_all_logits = true}, 64,
                          [&](std::span<const float> rows) {
                              again.insert(again.end(), rows.begin(), rows.end());
                              return ok();
                          })
                    .ok());
    EXPECT_TRUE(again == fresh);
}

TEST_P(SameAnswer, OnAnyNumberOfThreadsAndInstructionSet) {
    const auto tokens = random_tokens(9, kTokens);
    const auto one = all_logits(tokens, {});
    const auto two_threads = make_backend({.threads = 2, .isa = ""});
    EXPECT_TRUE(all_logits(*two_threads, tokens, {.split = {4}, .chunk = 7}) == one);
    const auto scalar = make_backend({.threads = 1, .isa = "scalar"});
    ASSERT_EQ(scalar->describe().isa, "scalar");
    EXPECT_TRUE(all_logits(*scalar, tokens, {}) == one);
}

// Guards the tests above against comparing constants.
TEST_P(SameAnswer, ButAnotherTokenOrStateTypeChangesIt) {
    auto tokens = random_tokens(10, kTokens);
    Cut f32;
    f32.state_type = graph::StateType::F32;
    const auto before = all_logits(tokens, {});
    EXPECT_FALSE(all_logits(tokens, f32) == before);
    tokens[100] ^= 1;
    const auto after = all_logits(tokens, {});
    const auto first = static_cast<std::ptrdiff_t>(std::size_t{100} * 96);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + first, after.begin()));
    for (std::size_t row = 100; row < 150; ++row)
        EXPECT_FALSE(std::equal(before.begin() + static_cast<std::ptrdiff_t>(row * 96),
                                before.begin() + static_cast<std::ptrdiff_t>((row + 1) * 96),
                                after.begin() + static_cast<std::ptrdiff_t>(row * 96)))
            << row;
}

std::vector<std::string> architecture_names() {
    std::vector<std::string> names;
    for (const models::Architecture& architecture : models::all_architectures())
        names.emplace_back(architecture.name);
    return names;
}
std::vector<std::string> backend_names() {
    const auto names = backends::backend_names();
    return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(All, SameAnswer,
                         testing::Combine(testing::ValuesIn(architecture_names()),
                                          testing::ValuesIn(backend_names())),
                         [](const auto& test) {
                             std::string name =
                                 std::get<0>(test.param) + "_" + std::get<1>(test.param);
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace artel::engine
