// SPDX-License-Identifier: Apache-2.0
// ARTEL_CHECK(condition, "why"): a programmer error; on in every build, prints and aborts.
// It must be unreachable from bytes that artel did not write (use Result for those).
// ARTEL_DCHECK is the same in debug builds only, for per-element conditions in kernels.
#pragma once

namespace artel {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);
}  // namespace artel

#define ARTEL_CHECK(condition, why)                      \
    (static_cast<bool>(condition) ? static_cast<void>(0) \
                                  : ::artel::check_failed(__FILE__, __LINE__, #condition, why))
#ifdef NDEBUG
#define ARTEL_DCHECK(condition, why) static_cast<void>(0)
#else
#define ARTEL_DCHECK(condition, why) ARTEL_CHECK(condition, why)
#endif
