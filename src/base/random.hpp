// SPDX-License-Identifier: Apache-2.0
// Random: a seeded generator with its own distributions, so that a seed gives the same values on
// every platform and library (std:: distributions do not). For simulation, jitter and tests; token
// sampling uses Philox (engine/sampler.hpp) and keys come from OpenSSL. Not thread-safe. Generator:
// SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
#pragma once

#include <cstdint>

namespace artel {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15ULL;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    /// Uniform in [0, bound); 0 when bound is 0.
    std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
    }
    /// Uniform in [low, high], both included; low <= high.
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    /// Uniform in [0, 1) with 53 bits.
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    bool chance(double probability) { return unit() < probability; }
    /// A generator whose stream is independent of this one's later values.
    Random fork() { return Random(next()); }

  private:
    std::uint64_t state_;
};

}  // namespace artel
