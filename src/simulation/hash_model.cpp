// SPDX-License-Identifier: Apache-2.0
#include "simulation/hash_model.hpp"

#include "base/check.hpp"

namespace artel::simulation {

using cluster::GroupProfile;
using protocol::kPageTokens;
using protocol::StateKind;
using protocol::TokenId;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    std::uint64_t z = (a ^ (b * 0x9E3779B97F4A7C15ULL)) + 0x632BE59BD9B4E019ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

HashRow embed(TokenId token, std::uint32_t position) {
    return {mix(token, position), mix(position, token + 1ULL)};
}

HashRow apply_layer(HashRow row, std::uint32_t layer, std::uint64_t history) {
    const std::uint64_t key = mix(history, layer);
    return {mix(row.low, key), mix(row.high ^ row.low, key + 1)};
}

std::uint64_t state_of(HashRow row, std::uint32_t layer) {
    return mix(row.low ^ row.high, layer);
}

std::vector<std::uint32_t> positions_read(const GroupProfile& group, std::uint32_t position) {
    std::vector<std::uint32_t> positions;
    if (position == 0) return positions;
    const bool has_window = group.kind == StateKind::Windowed && group.window <= position;
    const std::uint32_t first = has_window ? position - group.window + 1 : 0;
    for (std::uint32_t last = (first / kPageTokens) * kPageTokens + kPageTokens - 1;
         last + 1 < position; last += kPageTokens)
        positions.push_back(last);
    if (position - 1 >= first) positions.push_back(position - 1);
    return positions;
}

TokenId draw(HashRow final, const protocol::SamplingParameters& parameters,
             const std::map<TokenId, std::uint32_t>& generated, std::uint32_t position,
             std::uint32_t vocabulary_size) {
    std::uint64_t hash = mix(mix(final.low, final.high), mix(parameters.seed, parameters.choice));
    for (const auto& [token, count] : generated) hash = mix(hash, mix(token, count));
    return static_cast<TokenId>(mix(hash, position) % vocabulary_size);
}

HashRow HashOracle::feed(TokenId token) {
    HashRow row = embed(token, position_);
    for (std::uint32_t layer = 0; layer < model_.layers.size(); ++layer) {
        std::uint64_t history = 0;
        for (const cluster::LayerState& state : model_.layers[layer].states) {
            const GroupProfile& group = model_.groups[state.group];
            if (group.kind == StateKind::Slot) {
                if (position_ > 0) history = mix(history, states_[layer].back());
            } else {
                for (const std::uint32_t at : positions_read(group, position_))
                    history = mix(history, states_[layer][at]);
            }
        }
        const std::uint64_t stored = mix(state_of(row, layer), history);
        states_[layer].push_back(stored);
        row = apply_layer(row, layer, history);
    }
    ++position_;
    return row;
}

std::vector<TokenId> HashOracle::generate(const std::vector<TokenId>& prompt, std::uint32_t count) {
    ARTEL_CHECK(!prompt.empty(), "a prompt has at least one token");
    std::vector<TokenId> tokens;
    std::map<TokenId, std::uint32_t> generated;
    HashRow row;
    for (const TokenId token : prompt) row = feed(token);
    while (tokens.size() < count) {
        const TokenId token = draw(row, parameters_, generated, position_, model_.vocabulary_size);
        tokens.push_back(token);
        ++generated[token];
        row = feed(token);
    }
    return tokens;
}

}  // namespace artel::simulation
