// SPDX-License-Identifier: Apache-2.0
// An Error that nobody looks at is a compile error, from a function and from a formatter of errors.
#include "base/result.hpp"

namespace artel {

Error store();

Error caller() {
#ifdef ARTEL_MUST_NOT_COMPILE
    store();
#endif
    ARTEL_TRY(store());
    return not_found("{}", 1);
}

}  // namespace artel
