// SPDX-License-Identifier: Apache-2.0
#include "protocol/hash.hpp"

#include <fmt/core.h>
#include <xxhash.h>

namespace artel::protocol {

Hash128 hash_bytes(std::span<const std::byte> bytes) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.high64, hash.low64};
}

StreamHash::StreamHash() : state_(XXH3_createState()) {
    XXH3_128bits_reset(state_.get());
}
void StreamHash::Free::operator()(XXH3_state_s* state) const {
    XXH3_freeState(state);
}
void StreamHash::add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}
Hash128 StreamHash::value() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.high64, hash.low64};
}

std::string to_hex(const Hash128& hash) {
    return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

std::uint64_t frame_checksum(std::span<const std::byte> body, std::span<const std::byte> payload) {
    // Chained through the seed, which spares a streaming state.
    return XXH3_64bits_withSeed(payload.data(), payload.size(),
                                XXH3_64bits(body.data(), body.size()));
}

}  // namespace artel::protocol
