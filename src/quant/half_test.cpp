// SPDX-License-Identifier: Apache-2.0
// The software conversions against arithmetic that knows nothing of bit layouts, over every f16,
// and against the CPU's own instructions where it has them.
#include "quant/half.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace artel::quant {
namespace {

/// The value of a finite f16, from the definition of the format.
double value_of(std::uint32_t half) {
    const int exponent = static_cast<int>(half >> 10 & 31U);
    const double fraction = half & 1023U;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, exponent - 25);
    return (half & 0x8000U) != 0 ? -magnitude : magnitude;
}

bool is_nan_half(std::uint32_t half) {
    return (half & 0x7FFFU) > 0x7C00U;
}

TEST(Half, EveryF16GivesItsValue) {
    for (std::uint32_t half = 0; half <= 0xFFFFU; ++half) {
        const float value = f16_to_f32(static_cast<F16Bits>(half));
        if (is_nan_half(half)) {
            ASSERT_TRUE(std::isnan(value)) << half;
        } else if ((half & 0x7FFFU) == 0x7C00U) {
            ASSERT_EQ(value, (half & 0x8000U) != 0 ? -INFINITY : INFINITY) << half;
        } else {
            ASSERT_EQ(static_cast<double>(value), value_of(half)) << half;
            ASSERT_EQ(std::signbit(value), (half & 0x8000U) != 0) << half;
        }
    }
}

TEST(Half, EveryF16ComesBack) {
    for (std::uint32_t half = 0; half <= 0xFFFFU; ++half) {
        const std::uint32_t quiet = is_nan_half(half) ? 0x0200U : 0U;
        ASSERT_EQ(f32_to_f16(f16_to_f32(static_cast<F16Bits>(half))), half | quiet);
    }
}

// Between neighbours a < b: the middle goes to the even one, anything else to the nearer one.
TEST(Half, RoundsToNearestEven) {
    for (std::uint32_t low = 0; low < 0x7C00U; ++low) {
        const std::uint32_t high = low + 1;
        // Above the largest f16 the next one would have been 65536.
        const double next = high == 0x7C00U ? 65536.0 : value_of(high);
        const auto middle = static_cast<float>((value_of(low) + next) / 2);
        const std::uint32_t even = low % 2 == 0 ? low : high;
        ASSERT_EQ(f32_to_f16(middle), even);
        ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), low);
        ASSERT_EQ(f32_to_f16(std::nextafter(middle, INFINITY)), high);
        ASSERT_EQ(f32_to_f16(-middle), even | 0x8000U);
        ASSERT_EQ(f32_to_f16(-std::nextafter(middle, INFINITY)), high | 0x8000U);
    }
    EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7C00U);
    EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0U);
    EXPECT_EQ(f32_to_f16(-0.0F), 0x8000U);
}

TEST(Half, Bf16RoundsToNearestEven) {
    for (std::uint32_t half = 0; half <= 0xFFFFU; ++half) {
        const float value = bf16_to_f32(static_cast<Bf16Bits>(half));
        const bool is_nan = std::isnan(value);
        ASSERT_EQ(is_nan, (half & 0x7FFFU) > 0x7F80U);
        ASSERT_EQ(f32_to_bf16(value), is_nan ? half | 0x0040U : half);
        if ((half & 0x7F80U) == 0x7F80U) continue;
        const auto from_bits = [&](std::uint32_t low) {
            return f32_to_bf16(std::bit_cast<float>(half << 16 | low));
        };
        ASSERT_EQ(from_bits(0x7FFFU), half);
        ASSERT_EQ(from_bits(0x8000U), half % 2 == 0 ? half : half + 1);
        ASSERT_EQ(from_bits(0x8001U), half + 1);
    }
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) float hardware_f32(F16Bits half) {
    return _cvtsh_ss(half);
}
__attribute__((target("f16c"))) F16Bits hardware_f16(float value) {
    return static_cast<F16Bits>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
}

TEST(Half, SameBitsAsTheCpu) {
    // Leaf 1 of CPUID: Clang 16 has no __builtin_cpu_supports for F16C.
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
    if (!has_f16c || !__builtin_cpu_supports("avx")) GTEST_SKIP() << "this CPU has no F16C";
    for (std::uint32_t half = 0; half <= 0xFFFFU; ++half) {
        const auto bits = static_cast<F16Bits>(half);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(f16_to_f32(bits)),
                  std::bit_cast<std::uint32_t>(hardware_f32(bits)))
            << half;
    }
    Random random(1);
    for (int i = 0; i < 2'000'000; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
        ASSERT_EQ(f32_to_f16(value), hardware_f16(value)) << std::bit_cast<std::uint32_t>(value);
    }
}
#endif

}  // namespace
}  // namespace artel::quant
