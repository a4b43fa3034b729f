// SPDX-License-Identifier: Apache-2.0
// XXH3 of bytes: 128 bits for tensors and chunks, 64 bits for frames. Against accidents only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "protocol/ids.hpp"

struct XXH3_state_s;  // xxhash.h

namespace artel::protocol {

Hash128 hash_bytes(std::span<const std::byte> bytes);

/// The same of bytes that come in pieces.
class StreamHash {
  public:
    StreamHash();
    void add(std::span<const std::byte> bytes);
    Hash128 value() const;

  private:
    struct Free {
        void operator()(XXH3_state_s* state) const;
    };
    std::unique_ptr<XXH3_state_s, Free> state_;
};

std::string to_hex(const Hash128& hash);  // 32 digits

/// XXH3-64 of `payload` with the XXH3-64 of `body` as seed.
std::uint64_t frame_checksum(std::span<const std::byte> body, std::span<const std::byte> payload);

}  // namespace artel::protocol
