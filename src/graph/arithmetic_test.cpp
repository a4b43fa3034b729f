// SPDX-License-Identifier: Apache-2.0
#include "graph/arithmetic.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "graph/activation_rounding.hpp"
#include "graph/rope_angles.hpp"

namespace artel::graph {
namespace {

std::uint32_t bits_of(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

/// |actual - exact| in units of the last place of the exact value as a float.
double ulps(float actual, double exact) {
    const auto rounded = static_cast<float>(exact);
    const float next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
    const double unit = static_cast<double>(next) - static_cast<double>(std::abs(rounded));
    return std::abs(static_cast<double>(actual) - exact) / unit;
}

float random_bits(Random& random) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
}

TEST(FusedMultiplyAdd, IsTheCLibrarysForAnyBits) {
    Random random(1);
    for (int i = 0; i < 2'000'000; ++i) {
        float a = random_bits(random);
        float b = random_bits(random);
        float c = random_bits(random);
        // Half of the cases near cancellation or near a tie, where a second rounding would show.
        if (i % 2 == 0) {
            a = std::bit_cast<float>((bits_of(a) & 0x007F'FFFFU) | 0x3F80'0000U);
            b = std::bit_cast<float>((bits_of(b) & 0x007F'F000U) | 0x3F80'0000U);
            c = std::ldexp(c > 0 ? a : -a * b, static_cast<int>(random.between(-30, 30)));
        }
        const float expected = std::fma(a, b, c);
        const float actual = fused_multiply_add(a, b, c);
        if (std::isnan(expected))
            ASSERT_TRUE(std::isnan(actual)) << a << " " << b << " " << c;
        else
            ASSERT_EQ(bits_of(actual), bits_of(expected)) << a << " " << b << " " << c;
    }
}

TEST(ExactExp, KeepsItsErrorBound) {
    double worst = 0;
    for (std::int64_t i = -870'000; i <= 880'000; ++i) {
        const float x = static_cast<float>(i) * 1e-4F;
        worst = std::max(worst, ulps(exact_exp(x), std::exp(static_cast<double>(x))));
    }
    RecordProperty("worst_ulps", std::to_string(worst));
    EXPECT_LT(worst, 1.5);
}

TEST(ExactExp, HasItsEdges) {
    EXPECT_EQ(bits_of(exact_exp(0.0F)), bits_of(1.0F));
    EXPECT_EQ(bits_of(exact_exp(-0.0F)), bits_of(1.0F));
    EXPECT_GT(exact_exp(-87.0F), 0.0F);
    EXPECT_EQ(bits_of(exact_exp(std::nextafter(-87.0F, -100.0F))), bits_of(0.0F));
    EXPECT_EQ(bits_of(exact_exp(-std::numeric_limits<float>::infinity())), bits_of(0.0F));
    EXPECT_EQ(exact_exp(1000.0F), exact_exp(88.0F));
    EXPECT_TRUE(std::isfinite(exact_exp(std::numeric_limits<float>::infinity())));
    EXPECT_TRUE(std::isnan(exact_exp(std::nanf(""))));
}

TEST(ExactTanh, KeepsItsErrorBound) {
    double worst = 0;
    for (std::int64_t i = -1'000'000; i <= 1'000'000; ++i) {
        const float x = static_cast<float>(i) * 1e-5F;
        worst = std::max(worst, ulps(exact_tanh(x), std::tanh(static_cast<double>(x))));
    }
    RecordProperty("worst_ulps", std::to_string(worst));
    EXPECT_LT(worst, 2.0);
    EXPECT_EQ(exact_tanh(100.0F), 1.0F);
    EXPECT_EQ(exact_tanh(-100.0F), -1.0F);
    EXPECT_EQ(bits_of(exact_tanh(0.0F)), bits_of(0.0F));
    EXPECT_TRUE(std::isnan(exact_tanh(std::nanf(""))));
}

TEST(Activations, SiluAndGeluAreNearTheirDefinitions) {
    for (int i = -20'000; i <= 20'000; ++i) {
        const float x = static_cast<float>(i) * 1e-3F;
        const auto wide = static_cast<double>(x);
        const double u = std::sqrt(2 / M_PI) * (wide + 0.044715 * wide * wide * wide);
        const double allowed = 4e-7 * std::abs(wide) + 1e-37;
        ASSERT_NEAR(static_cast<double>(silu(x)), wide / (1 + std::exp(-wide)), allowed);
        ASSERT_NEAR(static_cast<double>(gelu_tanh(x)), 0.5 * wide * (1 + std::tanh(u)), allowed);
    }
    for (const float x : {-1e30F, -1e4F, -200.0F}) {
        EXPECT_NEAR(silu(x), 0.0F, 1e-6F);
        EXPECT_NEAR(gelu_tanh(x), 0.0F, 1e-6F);
    }
}

TEST(TreeSum, AddsHalvesToEachOther) {
    // 1 is lost beside 2^26 unless the large parts cancel first, as the tree makes them do.
    float partial[16] = {};
    partial[3] = 0x1p26F;
    partial[11] = -0x1p26F;
    partial[0] = 1;
    EXPECT_EQ(tree_sum(partial), 1.0F);
    partial[11] = 0;
    partial[4] = -0x1p26F;  // meets partial[3] only at the end, when 1 is lost in one of them
    EXPECT_EQ(tree_sum(partial), 0.0F);
}

TEST(ActivationRounding, IsByHandForASmallBlock) {
    float x[32] = {};
    x[0] = 12.7F;
    x[1] = -12.7F;
    x[2] = 0.05F;   // 0.5 of a quant: a tie goes to even
    x[3] = 0.149F;  // 1.49
    x[4] = -0.26F;
    std::int8_t quants[32];
    const float scale = round_activation_block(x, quants);
    EXPECT_EQ(bits_of(scale), bits_of(12.7F / 127.0F));
    EXPECT_EQ(quants[0], 127);
    EXPECT_EQ(quants[1], -127);
    EXPECT_EQ(quants[3], 1);
    EXPECT_EQ(quants[4], -3);
    for (int i = 5; i < 32; ++i) EXPECT_EQ(quants[i], 0);
}

TEST(ActivationRounding, RoundsToEvenAsTheCpuDoes) {
    for (const float x : {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 126.5F, -126.5F, 3.4999998F})
        EXPECT_EQ(round_to_even(x), static_cast<std::int32_t>(std::nearbyint(x))) << x;
}

TEST(ActivationRounding, StaysWithinHalfAQuantAndInRange) {
    Random random(2);
    for (int block = 0; block < 20'000; ++block) {
        float x[32];
        const double size = std::pow(10.0, -30 + 60 * random.unit());
        for (float& value : x) value = static_cast<float>((2 * random.unit() - 1) * size);
        std::int8_t quants[32];
        const double scale = static_cast<double>(round_activation_block(x, quants));
        for (int i = 0; i < 32; ++i) {
            ASSERT_GE(quants[i], -127);
            ASSERT_NEAR(scale * quants[i], static_cast<double>(x[i]), 0.50001 * scale);
        }
    }
}

TEST(ActivationRounding, HasDefinedEdges) {
    std::int8_t quants[32];
    float x[32] = {};
    EXPECT_EQ(bits_of(round_activation_block(x, quants)), bits_of(0.0F));
    x[5] = 0x1p-121F;  // too small
    EXPECT_EQ(bits_of(round_activation_block(x, quants)), bits_of(0.0F));
    EXPECT_EQ(quants[5], 0);
    x[5] = 0x1p-120F;
    EXPECT_GT(round_activation_block(x, quants), 0.0F);
    EXPECT_EQ(quants[5], 127);
    x[7] = std::numeric_limits<float>::max();
    EXPECT_TRUE(std::isfinite(round_activation_block(x, quants)));
    EXPECT_EQ(quants[7], 127);
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        x[9] = bad;
        EXPECT_TRUE(std::isnan(round_activation_block(x, quants)));
        for (const std::int8_t quant : quants) EXPECT_EQ(quant, 0);
    }
}

TEST(RopeAngles, FrequenciesAreThePowers) {
    const float factors[] = {1, 2, 4, 8};
    const auto plain =
        rope_frequencies({.rope_dim = 8, .base = 500000, .frequency_scale = 0.25F}, {});
    const auto divided =
        rope_frequencies({.rope_dim = 8, .base = 500000, .frequency_scale = 0.25F}, factors);
    for (int i = 0; i < 4; ++i) {
        const double exact = 0.25 * std::pow(500000.0, -2.0 * i / 8);
        EXPECT_NEAR(plain[i] / exact, 1, 1e-14);
        EXPECT_EQ(divided[i], plain[i] / static_cast<double>(factors[i]));
    }
}

TEST(RopeAngles, RotationsAreTheAngles) {
    Random random(3);
    for (int i = 0; i < 300'000; ++i) {
        const double frequency = std::pow(10.0, -6 * random.unit());
        const auto position = static_cast<std::uint32_t>(random.below(1 << 20));
        const double angle = frequency * position;
        const Rotation turn = rope_rotation(frequency, position);
        ASSERT_NEAR(static_cast<double>(turn.cosine), std::cos(angle), 0x1p-24 / 2 + 0x1p-30);
        ASSERT_NEAR(static_cast<double>(turn.sine), std::sin(angle), 0x1p-24 / 2 + 0x1p-30);
    }
    EXPECT_EQ(rope_rotation(1, 0).cosine, 1.0F);
    EXPECT_EQ(rope_rotation(1, 0).sine, 0.0F);
    EXPECT_TRUE(std::isnan(rope_rotation(INFINITY, 1).cosine));
    EXPECT_TRUE(std::isnan(rope_rotation(INFINITY, 0).sine));
    EXPECT_TRUE(std::isnan(rope_rotation(1e30, 7).cosine));
}

// gpt-oss: pairs up to 8 keep their frequency, those from 18 on get 1/32 of it.
TEST(RopeAngles, FollowYarnsRamp) {
    const YarnRamp ramp = yarn_ramp({.rope_dim = 64, .base = 150000, .original_context = 4096});
    EXPECT_EQ(ramp.low, 8);
    EXPECT_EQ(ramp.high, 18);
    const auto plain = rope_frequencies({.rope_dim = 64, .base = 150000, .ramp = {}}, {});
    const auto stretched = rope_frequencies(
        {.rope_dim = 64, .base = 150000, .frequency_scale = 1.0F / 32, .ramp = ramp}, {});
    EXPECT_EQ(stretched[8], plain[8]);
    EXPECT_NEAR(stretched[13] / plain[13], (1.0 + 1.0 / 32) / 2, 1e-12);
    EXPECT_EQ(stretched[18], plain[18] / 32);
    EXPECT_NEAR(yarn_magnitude(32, 0.1F), 1.3465736F, 1e-6);
    EXPECT_EQ(rope_rotation(0, 5, 1.25F).cosine, 1.25F);
}

TEST(GeluErf, KeepsItsErrorBound) {
    for (int i = -80'000; i <= 80'000; ++i) {
        const float x = static_cast<float>(i) * 1e-4F;
        const double exact =
            0.5 * static_cast<double>(x) * std::erfc(-static_cast<double>(x) / std::sqrt(2.0));
        const double bound = 2e-7 * std::abs(static_cast<double>(x)) + 1e-7 * std::abs(exact);
        ASSERT_NEAR(static_cast<double>(gelu_erf(x)), exact, bound) << x;
    }
}

}  // namespace
}  // namespace artel::graph
