// SPDX-License-Identifier: Apache-2.0
#include "base/byte_count.hpp"

#include <charconv>
#include <cmath>

namespace artel {
namespace {

struct Unit {
    std::string_view name;
    double bytes;
};
constexpr Unit kUnits[] = {{"", 1.0},
                           {"B", 1.0},
                           {"KiB", 1024.0},
                           {"MiB", 1048576.0},
                           {"GiB", 1073741824.0},
                           {"TiB", 1099511627776.0},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12}};

}  // namespace

Result<std::uint64_t> parse_byte_count(std::string_view text) {
    double number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
    while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
    if (failure != std::errc() || !std::isfinite(number) || number < 0)
        return invalid_argument(
            "'{}' is not a byte count; expected a number and B, KiB, MiB, GiB, KB, MB or GB", text);
    for (const Unit& known : kUnits) {
        if (known.name != unit) continue;
        const double bytes = number * known.bytes;
        if (bytes >= 0x1.0p63)
            return invalid_argument("'{}' is more bytes than 63 bits hold", text);
        return static_cast<std::uint64_t>(bytes);
    }
    return invalid_argument(
        "'{}': unknown unit '{}'; expected B, KiB, MiB, GiB, TiB, KB, MB, GB or TB", text, unit);
}

std::string format_byte_count(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    constexpr std::string_view kNames[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes) / 1024.0;
    std::size_t unit = 0;
    while (value >= 1000.0 && unit + 1 < std::size(kNames)) {
        value /= 1024.0;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kNames[unit]);
}

}  // namespace artel
