// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace artel {

void check_failed(const char* file, int line, const char* condition, const char* why) {
    std::fprintf(stderr, "artel: bug at %s:%d: %s (%s)\n", file, line, why, condition);
    std::abort();
}

}  // namespace artel
