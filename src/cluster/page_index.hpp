// SPDX-License-Identifier: Apache-2.0
// Which entries of a sequence's page table a position needs. The one place for this arithmetic,
// used by the coordinator (who owns pages) and by stages (who check and read them).
#pragma once

#include <cstdint>

#include "protocol/messages.hpp"

namespace artel::cluster {

/// Index of the first page that a row at `position` can still see.
inline std::uint32_t first_visible_index(protocol::StateKind kind, std::uint32_t window,
                                         std::uint32_t position) {
    if (kind != protocol::StateKind::Windowed || position < window) return 0;
    return (position - window + 1) / protocol::kPageTokens;
}

/// One past the last index that positions [0, end) use.
inline std::uint32_t end_index(protocol::StateKind kind, std::uint32_t end) {
    if (end == 0) return 0;
    if (kind == protocol::StateKind::Slot) return 1;
    return (end - 1) / protocol::kPageTokens + 1;
}

}  // namespace artel::cluster
