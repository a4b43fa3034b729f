// SPDX-License-Identifier: Apache-2.0
#include "api/random_name.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>

namespace artel::api {

std::string random_name(std::string_view prefix) {
    std::array<unsigned char, 12> bytes{};
    RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
    std::string name(prefix);
    for (const unsigned char byte : bytes) name += fmt::format("{:02x}", byte);
    return name;
}

std::uint64_t random_seed() {
    std::uint64_t seed = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&seed), sizeof(seed));
    return seed >> 1U;
}

}  // namespace artel::api
