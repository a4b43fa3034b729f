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

struct RopeSpec {
    std::uint32_t rope_dim = 0;
    float base = 10000;
    float frequency_scale = 1;
};

/// Radians a position for each pair: frequency_scale * base^(-2i / rope_dim) / factors[i]
/// (rope_dim / 2). `factors` may be empty.
std::vector<double> rope_frequencies(const RopeSpec& spec, std::span<const float> factors);

struct Rotation {
    float cosine = 1;
    float sine = 0;
};
/// Of the angle position * frequency, rounded to float once.
Rotation rope_rotation(double frequency, std::uint32_t position);

}  // namespace artel::graph
