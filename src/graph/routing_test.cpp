// SPDX-License-Identifier: Apache-2.0
// The choice of experts, with numbers that a person can check.
#include "graph/routing.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace artel::graph {
namespace {

std::vector<ExpertShare> choose(const Routing& routing, const std::vector<float>& logits,
                                const std::vector<float>& bias = {}) {
    std::vector<float> room(2 * logits.size());
    std::vector<ExpertShare> chosen(routing.used_count);
    choose_experts(routing, logits.data(), bias.empty() ? nullptr : bias.data(), room.data(),
                   chosen.data());
    return chosen;
}

std::vector<std::uint32_t> numbers(const std::vector<ExpertShare>& chosen) {
    std::vector<std::uint32_t> experts;
    for (const ExpertShare& share : chosen) experts.push_back(share.expert);
    return experts;
}

using Numbers = std::vector<std::uint32_t>;

TEST(Routing, WeighsByASoftmaxOverAllExperts) {
    const float ln2 = std::log(2.0F);
    // e^x: 1, 2, 4, 1.
    const auto chosen = choose({.expert_count = 4, .used_count = 2}, {0, ln2, 2 * ln2, 0});
    EXPECT_EQ(numbers(chosen), (Numbers{1, 2}));
    EXPECT_NEAR(chosen[0].weight, 0.25, 1e-6);
    EXPECT_NEAR(chosen[1].weight, 0.5, 1e-6);
}

TEST(Routing, NormalisesAndScales) {
    const float ln2 = std::log(2.0F);
    const auto chosen = choose({.expert_count = 4, .used_count = 2, .normalises = true, .scale = 3},
                               {0, ln2, 2 * ln2, 0});
    EXPECT_NEAR(chosen[0].weight, 1.0, 1e-6);
    EXPECT_NEAR(chosen[1].weight, 2.0, 1e-6);
}

TEST(Routing, WeighsByASoftmaxOverTheChosen) {
    const float ln3 = std::log(3.0F);
    const auto chosen = choose(
        {.score = ExpertScore::ChosenSoftmax, .expert_count = 3, .used_count = 2}, {ln3, -9, 0});
    EXPECT_EQ(numbers(chosen), (Numbers{0, 2}));
    EXPECT_NEAR(chosen[0].weight, 0.75, 1e-6);
    EXPECT_NEAR(chosen[1].weight, 0.25, 1e-6);
}

TEST(Routing, LetsABiasCountForTheChoiceAlone) {
    const Routing routing{.score = ExpertScore::Sigmoid, .expert_count = 3, .used_count = 1};
    EXPECT_EQ(numbers(choose(routing, {0, 1, 2})), (Numbers{2}));
    const auto chosen = choose(routing, {0, 1, 2}, {1, 0, 0});
    EXPECT_EQ(numbers(chosen), (Numbers{0}));
    EXPECT_EQ(chosen[0].weight, 0.5F);
}

TEST(Routing, ChoosesWithinTheBestGroups) {
    Routing routing{.score = ExpertScore::Sigmoid,
                    .expert_count = 6,
                    .used_count = 2,
                    .groups = 3,
                    .groups_used = 1};
    // Without a bias a group is as good as its best expert, with one as its two best together.
    const std::vector<float> logits = {3, -3, 2, 2, 1, 1};
    EXPECT_EQ(numbers(choose(routing, logits)), (Numbers{0, 1}));
    EXPECT_EQ(numbers(choose(routing, logits, {0, 0, 0, 0, 0, 0})), (Numbers{2, 3}));
    routing.groups_used = 2;
    EXPECT_EQ(numbers(choose(routing, {3, -3, 2, 0, 1, 1})), (Numbers{0, 2}));
}

TEST(Routing, TakesTheLowerNumberOfEquals) {
    EXPECT_EQ(numbers(choose({.expert_count = 4, .used_count = 2}, {1, 2, 2, 2})), (Numbers{1, 2}));
    EXPECT_EQ(numbers(choose({.expert_count = 4, .used_count = 1, .groups = 2}, {1, 1, 1, 1})),
              (Numbers{0}));
}

TEST(Routing, ChoosesDifferentExpertsWhateverTheLogitsAre) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    for (const auto score :
         {ExpertScore::Softmax, ExpertScore::Sigmoid, ExpertScore::ChosenSoftmax})
        for (const std::vector<float>& logits : {std::vector<float>{nan, nan, nan, nan},
                                                 {nan, 1, nan, 2},
                                                 {-infinity, 1, infinity, 2},
                                                 {-infinity, -infinity, -infinity, -infinity}}) {
            const auto chosen = choose(
                {.score = score, .expert_count = 4, .used_count = 2, .groups = 2, .groups_used = 1},
                logits);
            EXPECT_LT(chosen[0].expert, chosen[1].expert);
            EXPECT_LT(chosen[1].expert, 4U);
        }
}

}  // namespace
}  // namespace artel::graph
