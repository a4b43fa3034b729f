// SPDX-License-Identifier: Apache-2.0
// StrongId: numbers that name different things are different types and do not mix.
// Ordered (for std::map), streamable through .value. kNone-like sentinels belong to the user of the
// id.
#pragma once

#include <compare>
#include <cstdint>

namespace artel {

template <class Tag, class Representation = std::uint64_t>
struct StrongId {
    Representation value = 0;
    friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

}  // namespace artel
