// SPDX-License-Identifier: Apache-2.0
#include "graph/rope_angles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace artel::graph {

namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kRounder = 0x1.8p52;  // adding it rounds to a whole number, |x| < 2^51

/// ln x for normal x > 0, to about 2 units in the last place.
///   x = 2^e m, m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716.
double natural_log(double x) {
    std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<int>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & 0x000F'FFFF'FFFF'FFFFULL) | 0x3FF0'0000'0000'0000ULL);
    if (m > 0x1.6a09e667f3bcdp0) {
        m = m * 0.5;
        ++exponent;
    }
    const double s = (m - 1) / (m + 1);
    const double z = s * s;
    double series = 0;  // 1 + z/3 + z^2/5 ... to z^11/23: the rest is below 2^-60
    for (int k = 11; k >= 0; --k) series = series * z + 1.0 / (2 * k + 1);
    return static_cast<double>(exponent) * kLn2 + 2 * s * series;
}

/// e^x for |x| < 700. x = n ln 2 + r, |r| < 0.35, and the Taylor series of e^r to r^14.
double exponential(double x) {
    constexpr double kLn2High = 0x1.62e42feep-1;  // 33 bits: n * kLn2High is exact
    constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
    const double n = (x * (1 / kLn2) + kRounder) - kRounder;
    const double r = (x - n * kLn2High) - n * kLn2Low;
    double series = 1;
    for (int k = 14; k >= 1; --k) series = series * r / k + 1;
    const auto exponent = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023);
    return series * std::bit_cast<double>(exponent << 52);
}

/// sin r for |r| <= pi / 4, Taylor to r^17.
double sine_series(double r) {
    const double z = r * r;
    double series = 1;
    for (int k = 8; k >= 1; --k) series = 1 - series * z / ((2 * k) * (2 * k + 1));
    return series * r;
}

/// cos r for |r| <= pi / 4, Taylor to r^18.
double cosine_series(double r) {
    const double z = r * r;
    double series = 1;
    for (int k = 9; k >= 1; --k) series = 1 - series * z / ((2 * k - 1) * (2 * k));
    return series;
}

/// The pair that turns `turns` times within the original context.
double pair_of_turns(const YarnSpec& spec, float turns) {
    constexpr double kTwoPi = 0x1.921fb54442d18p2;
    const double ratio = spec.original_context / (static_cast<double>(turns) * kTwoPi);
    return spec.rope_dim * natural_log(ratio) / (2 * natural_log(static_cast<double>(spec.base)));
}

/// How much of the scale pair i gets: 0 to 1.
double ramp_share(const YarnRamp& ramp, std::size_t i) {
    const auto low = static_cast<double>(ramp.low);
    const auto high = static_cast<double>(ramp.high);
    if (!(high > low)) return 1;
    return std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
}

}  // namespace

YarnRamp yarn_ramp(const YarnSpec& spec) {
    const double last = spec.rope_dim - 1.0;
    const double low = std::max(0.0, std::floor(pair_of_turns(spec, spec.beta_fast)));
    const double high = std::min(last, std::ceil(pair_of_turns(spec, spec.beta_slow)));
    // A ramp without width is a step.
    return {static_cast<float>(low), static_cast<float>(high > low ? high : low + 0.001)};
}

float yarn_magnitude(float factor, float multiplier) {
    return static_cast<float>(1 + static_cast<double>(multiplier) *
                                      natural_log(static_cast<double>(factor)));
}

std::vector<double> rope_frequencies(const RopeSpec& spec, std::span<const float> factors) {
    const double log_base = natural_log(static_cast<double>(spec.base));
    std::vector<double> frequencies(spec.rope_dim / 2);
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const double power = static_cast<double>(2 * i) / spec.rope_dim;
        const double share = ramp_share(spec.ramp, i);
        const double scale = static_cast<double>(spec.frequency_scale) * share + (1 - share);
        frequencies[i] = scale * exponential(-power * log_base);
        if (!factors.empty()) frequencies[i] = frequencies[i] / static_cast<double>(factors[i]);
    }
    return frequencies;
}

Rotation rope_rotation(double frequency, std::uint32_t position, float magnitude) {
    // pi / 2 in three parts; the first two have 33 bits, so that their products with n are exact.
    constexpr double kHalfPi1 = 0x1.921fb544p0;
    constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
    constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
    constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
    constexpr double kAngleMax = 0x1p32;  // also refuses what a zero or a NaN in the file makes

    const double angle = static_cast<double>(position) * frequency;
    if (!(angle < kAngleMax && angle > -kAngleMax)) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        return {nan, nan};
    }
    const double n = (angle * kTwoOverPi + kRounder) - kRounder;
    const double r = ((angle - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
    const auto length = static_cast<double>(magnitude);
    const auto sine = static_cast<float>(length * sine_series(r));
    const auto cosine = static_cast<float>(length * cosine_series(r));
    switch (static_cast<std::int64_t>(n) & 3) {  // quarter turns
        case 0:
            return {cosine, sine};
        case 1:
            return {-sine, cosine};
        case 2:
            return {-cosine, -sine};
        default:
            return {sine, -cosine};
    }
}

}  // namespace artel::graph
