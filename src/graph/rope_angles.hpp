// SPDX-License-Identifier: Apache-2.0
// Rope's angles, the same on every machine: computed in double by plain additions, multiplications
// and divisions alone, never by the C library, whose last bit depends on version and CPU. Compiled
// once, for the baseline instruction set. Absolute error of c and s below 2^-24 + 2^-30 for
// |angle| < 2^20 rad. A backend may keep a step's rotations for all layers. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace artel::graph {

/// YaRN (Peng et al. 2023, arXiv 2309.00071): pairs up to `low` keep their frequency, from `high`
/// on it is scaled, between them it is mixed. low == high: all are scaled.
struct YarnRamp {
    float low = 0;
    float high = 0;
    friend bool operator==(const YarnRamp&, const YarnRamp&) = default;
};
struct YarnSpec {
    std::uint32_t rope_dim = 0;
    float base = 10000;
    std::uint32_t original_context = 0;
    float beta_fast = 32;  // turns within the original context
    float beta_slow = 1;
};
/// The pairs that turn beta_fast and beta_slow times within the original context, rounded outwards
/// to whole pairs as GGUF's users do (files do not say; some training code does not round).
YarnRamp yarn_ramp(const YarnSpec& spec);
/// 1 + multiplier * ln(factor): by how much longer contexts want sharper scores.
float yarn_magnitude(float factor, float multiplier);

struct RopeSpec {
    std::uint32_t rope_dim = 0;
    float base = 10000;
    float frequency_scale = 1;
    YarnRamp ramp = {};
};

/// Radians a position for each pair: frequency_scale * base^(-2i / rope_dim) / factors[i]
/// (rope_dim / 2), where the ramp lets the scale be. `factors` may be empty.
std::vector<double> rope_frequencies(const RopeSpec& spec, std::span<const float> factors);

struct Rotation {
    float cosine = 1;
    float sine = 0;
};
/// Of the angle position * frequency, times `magnitude`, rounded to float once.
Rotation rope_rotation(double frequency, std::uint32_t position, float magnitude = 1);

}  // namespace artel::graph
