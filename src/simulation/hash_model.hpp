// SPDX-License-Identifier: Apache-2.0
// The fake model: a hash chain with the data flow of a transformer. A row is 16 bytes; layer l maps
// it to mix(row, l, history), where history is read from the pages of the layer's state group, and
// writes what it made of the row into the page of its position. So any lost, repeated, reordered or
// misrouted step, any stale or doubly owned page and any wrong epoch changes every later token. The
// oracle is the same model on one node without pages (HashOracle); a cluster must give its tokens.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cluster/profile.hpp"
#include "protocol/messages.hpp"

namespace artel::simulation {

struct HashRow {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    friend bool operator==(const HashRow&, const HashRow&) = default;
};
inline constexpr std::uint32_t kHashRowBytes = sizeof(HashRow);

std::uint64_t mix(std::uint64_t a, std::uint64_t b);
HashRow embed(protocol::TokenId token, std::uint32_t position);
HashRow apply_layer(HashRow row, std::uint32_t layer, std::uint64_t history);
/// What a layer stores for a row.
std::uint64_t state_of(HashRow row, std::uint32_t layer);

/// Positions whose stored state the row at `position` reads, ascending: the one before it and the
/// last of each whole page before that, as far as the group's window reaches. Reading every
/// position would be truer, and cost the square of the length.
std::vector<std::uint32_t> positions_read(const cluster::GroupProfile& group,
                                          std::uint32_t position);

/// The token drawn after the last row of a prompt or the last token.
protocol::TokenId draw(HashRow final, const protocol::SamplingParameters& parameters,
                       const std::map<protocol::TokenId, std::uint32_t>& generated,
                       std::uint32_t position, std::uint32_t vocabulary_size);

/// One sequence computed alone: the truth.
class HashOracle {
  public:
    HashOracle(const cluster::ModelProfile& model, protocol::SamplingParameters parameters)
        : model_(model), parameters_(std::move(parameters)), states_(model.layers.size()) {}
    /// The first `count` tokens after `prompt`.
    std::vector<protocol::TokenId> generate(const std::vector<protocol::TokenId>& prompt,
                                            std::uint32_t count);

  private:
    HashRow feed(protocol::TokenId token);
    const cluster::ModelProfile& model_;
    protocol::SamplingParameters parameters_;
    std::vector<std::vector<std::uint64_t>> states_;  // [layer][position]; one value for a slot
    std::uint32_t position_ = 0;
};

}  // namespace artel::simulation
