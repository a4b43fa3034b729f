// SPDX-License-Identifier: Apache-2.0
// The names of things on the wire. Each is its own type, so they do not mix; all are ordered, so
// that maps over them have the same order in every run. Value 0 means "none" for NodeId,
// SequenceId, RequestId and StepNumber, and no message may use it where a real one is meant.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "base/strong_id.hpp"

namespace artel::protocol {

using NodeId = StrongId<struct NodeTag>;
using SequenceId = StrongId<struct SequenceTag>;
using RequestId = StrongId<struct RequestTag>;
using StepNumber = StrongId<struct StepTag>;                  // 1, 2, 3 ... within one epoch
using PageId = StrongId<struct PageTag, std::uint32_t>;       // within one state group, from 0
using GroupIndex = StrongId<struct GroupTag, std::uint32_t>;  // index into the model's state groups
using TokenId = std::uint32_t;  // a vocabulary entry; compared with the vocabulary size where used

/// Positions of one page: the state of so many consecutive tokens.
inline constexpr std::uint32_t kPageTokens = 64;

/// A plan's number within a coordinator's term. {0, 0} is "no epoch yet".
struct Epoch {
    std::uint64_t term = 0;
    std::uint64_t number = 0;
    friend constexpr auto operator<=>(const Epoch&, const Epoch&) = default;
};

/// Consecutive layers, [first, first + count).
struct LayerRange {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    constexpr std::uint32_t end() const { return first + count; }
    friend constexpr auto operator<=>(const LayerRange&, const LayerRange&) = default;
};

/// XXH3-128 of some bytes; against accidents, not against enemies (those are kept out by TLS).
struct Hash128 {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
};

/// The id of the node with this (unique, certified) name: FNV-1a, never 0. Both ends compute it, so
/// ids need no handing out. Two names with one id do not get in together (the second is refused).
constexpr NodeId node_id(std::string_view name) {
    std::uint64_t hash = 0xCBF29CE484222325ULL;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    return NodeId{hash == 0 ? 1 : hash};
}

}  // namespace artel::protocol
