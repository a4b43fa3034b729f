// SPDX-License-Identifier: Apache-2.0
// Byte counts for people: "14GiB" in, "13.9 GiB" out; and checked arithmetic on sizes from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace artel {

/// "512", "64KiB", "14GiB", "1.5GB" (powers of 1000 without the i). Errors: not a number, unknown
/// unit, overflow.
Result<std::uint64_t> parse_byte_count(std::string_view text);
/// "13.9 GiB", "512 B": three significant digits, powers of 1024.
std::string format_byte_count(std::uint64_t bytes);

/// a * b and a + b, or nothing where 64 bits do not hold the result.
inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
    return product;
}
inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
    std::uint64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
    return sum;
}

}  // namespace artel
