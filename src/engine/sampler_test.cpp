// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/random.hpp"

namespace artel::engine {
namespace {

std::map<TokenId, int> histogram(const std::vector<float>& logits, SamplingState state, int draws) {
    Sampler sampler;
    std::map<TokenId, int> counts;
    for (int i = 0; i < draws; ++i)
        ++counts[sampler.sample(logits, state, static_cast<std::uint32_t>(i))->token];
    return counts;
}

TEST(Sampler, TemperatureZeroTakesTheLargestAndTheLowerIdOnATie) {
    Sampler sampler;
    SamplingState state;
    state.parameters.temperature = 0;
    EXPECT_EQ(sampler.sample(std::vector<float>{1, 5, 5, 2}, state, 0)->token, 1u);
}

TEST(Sampler, DrawsFollowTheSoftmax) {
    const std::vector<float> logits{0.0F, std::log(3.0F)};  // 1 : 3
    const auto counts = histogram(logits, {}, 20000);
    EXPECT_NEAR(counts.at(1) / 20000.0, 0.75, 0.012);
}

TEST(Sampler, TopKTopPAndMinPKeepTheMostLikely) {
    const std::vector<float> logits{std::log(0.1F), std::log(0.2F), std::log(0.3F), std::log(0.4F)};
    SamplingState state;
    state.parameters.top_k = 2;
    EXPECT_EQ(histogram(logits, state, 500).size(), 2u);
    state.parameters = {};
    state.parameters.top_p = 0.65F;  // 0.4 + 0.3 reaches it
    const auto nucleus = histogram(logits, state, 500);
    EXPECT_EQ(nucleus.size(), 2u);
    EXPECT_TRUE(nucleus.contains(2) && nucleus.contains(3));
    state.parameters = {};
    state.parameters.min_p = 0.6F;  // 0.24 and more: 0.3 and 0.4
    EXPECT_EQ(histogram(logits, state, 500).size(), 2u);
}

TEST(Sampler, TopPOverALongVocabularyKeepsExactlyTheSmallestNucleus) {
    Random random(3);
    std::vector<float> logits(1000);
    for (float& logit : logits) logit = static_cast<float>(random.unit() * 4);
    std::vector<TokenId> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
    std::sort(order.begin(), order.end(),
              [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
    double total = 0, mass = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    std::size_t kept = 0;
    while (mass < 0.5 * total) mass += std::exp(static_cast<double>(logits[order[kept++]]));
    SamplingState state;
    state.parameters.top_p = 0.5F;
    const auto counts = histogram(logits, state, 30000);
    EXPECT_EQ(counts.size(), kept);
    for (const auto& [token, count] : counts) EXPECT_GE(logits[token], logits[order[kept - 1]]);
}

TEST(Sampler, PenaltiesCountGeneratedTokensAndRepetitionCountsThePrompt) {
    Sampler sampler;
    SamplingState state;
    state.parameters.temperature = 0;
    state.parameters.presence_penalty = 1.0F;
    state.parameters.frequency_penalty = 0.5F;
    const TokenId prompt[] = {0};
    state.counts.add_prompt(prompt);
    EXPECT_EQ(sampler.sample(std::vector<float>{3, 2.6F}, state, 0)->token,
              0u);  // prompt tokens are free
    state.counts.add_generated(0);
    EXPECT_EQ(sampler.sample(std::vector<float>{3, 1.4F}, state, 1)->token,
              0u);  // 3 - 1 - 0.5 = 1.5
    state.counts.add_generated(0);
    EXPECT_EQ(sampler.sample(std::vector<float>{3, 1.4F}, state, 2)->token,
              1u);  // 3 - 1 - 1.0 = 1.0
    state.parameters = {};
    state.parameters.temperature = 0;
    state.parameters.repetition_penalty = 2.0F;
    EXPECT_EQ(sampler.sample(std::vector<float>{-1, -1.5F}, state, 3)->token, 1u);  // -1 * 2 < -1.5
}

TEST(Sampler, BiasAndMaskDecideWhatIsPossible) {
    Sampler sampler;
    SamplingState state;
    state.parameters.temperature = 0;
    state.parameters.logit_bias = {{2, 100.0F}};
    EXPECT_EQ(sampler.sample(std::vector<float>{3, 2, 1}, state, 0)->token, 2u);
    const std::uint32_t only_one[] = {0b010};
    EXPECT_EQ(sampler.sample(std::vector<float>{3, 2, 1}, state, 0, only_one)->token, 1u);
    const std::uint32_t none[] = {0};
    EXPECT_FALSE(sampler.sample(std::vector<float>{3, 2, 1}, state, 0, none).ok());
}

TEST(Sampler, NotANumberIsAnErrorAndNeverAToken) {
    Sampler sampler;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(sampler.sample(std::vector<float>{0, nan}, {}, 0).status().code(),
              ErrorCode::kInternal);
}

TEST(Sampler, ATokenDependsOnSeedChoiceAndPositionOnly) {
    std::vector<float> logits(100, 0.0F);
    SamplingState state;
    state.parameters.seed = 42;
    Sampler fresh, used;
    for (std::uint32_t i = 0; i < 50; ++i) (void)used.sample(logits, state, i);
    EXPECT_EQ(fresh.sample(logits, state, 7)->token, used.sample(logits, state, 7)->token);
    std::map<TokenId, int> by_position, by_seed, by_choice;
    for (std::uint32_t i = 0; i < 50; ++i) {
        ++by_position[fresh.sample(logits, state, i)->token];
        SamplingState other = state;
        other.parameters.seed = i;
        ++by_seed[fresh.sample(logits, other, 0)->token];
        other = state;
        other.parameters.choice = i;
        ++by_choice[fresh.sample(logits, other, 0)->token];
    }
    for (const auto& spread : {by_position, by_seed, by_choice}) EXPECT_GT(spread.size(), 20u);
}

TEST(Sampler, LogprobsAreTheModelsOwnWhateverTheParameters) {
    Sampler sampler;
    SamplingState state;
    state.parameters.temperature = 0;
    state.parameters.wants_logprob = true;
    state.parameters.top_logprobs = 2;
    state.parameters.logit_bias = {{0, 50.0F}};
    const std::vector<float> logits{std::log(0.2F), std::log(0.5F), std::log(0.3F)};
    const auto sampled = sampler.sample(logits, state, 0);
    EXPECT_EQ(sampled->token, 0u);
    EXPECT_NEAR(sampled->logprob, std::log(0.2), 1e-6);
    ASSERT_EQ(sampled->top_logprobs.size(), 2u);
    EXPECT_EQ(sampled->top_logprobs[0].token, 1u);
    EXPECT_NEAR(sampled->top_logprobs[1].logprob, std::log(0.3), 1e-6);
}

TEST(Sampler, ParametersOutOfRangeAreNamed) {
    SamplingParameters parameters;
    parameters.top_p = 1.5F;
    EXPECT_EQ(check_sampling_parameters(parameters, 10).message(), "top_p is 1.5; expected 0 to 1");
    parameters = {};
    parameters.logit_bias = {{10, 1.0F}};
    EXPECT_FALSE(check_sampling_parameters(parameters, 10).ok());
    EXPECT_TRUE(check_sampling_parameters({}, 10).ok());
}

}  // namespace
}  // namespace artel::engine
