// SPDX-License-Identifier: Apache-2.0
// A seed from the operating system, for what must differ from run to run (jitter, names), not for
// keys.
#pragma once

#include <sys/random.h>

#include <cstdint>

namespace artel::runtime {

inline std::uint64_t system_seed() {
    std::uint64_t seed = 0;
    // Eight bytes come whole or not at all; without them the address of a local differs too.
    if (::getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        seed = reinterpret_cast<std::uintptr_t>(&seed);
    return seed;
}

}  // namespace artel::runtime
