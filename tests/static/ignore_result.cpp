// SPDX-License-Identifier: Apache-2.0
// A Result that nobody looks at is a compile error.
#include "base/result.hpp"

namespace artel {

Result<int> parse();

void caller() {
#ifdef ARTEL_MUST_NOT_COMPILE
    parse();
#else
    const Result<int> parsed = parse();
    static_cast<void>(parsed.ok());
#endif
}

}  // namespace artel
