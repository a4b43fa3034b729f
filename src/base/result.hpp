// SPDX-License-Identifier: Apache-2.0
// The only error type of artel: Result<T> (a value or an Error) and Error (absl::Status, "ok"
// included). The world or a user can cause an Error; only a bug can cause a failed ARTEL_CHECK
// (check.hpp). Messages say what was found, what was expected and what to do. Each layer adds its
// own noun with with_context(), so a message reads "loading qwen3.gguf: blk.3.ffn_down.weight: 12
// bytes past end of file".
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace artel {

using Error = absl::Status;
using ErrorCode = absl::StatusCode;
template <class T>
using Result = absl::StatusOr<T>;

/// The Error that means success.
inline Error ok() {
    return absl::OkStatus();
}

/// An Error of `code` with a formatted message, e.g. make_error(ErrorCode::kDataLoss, "{} bytes",
/// 3).
template <class... Args>
[[nodiscard]] Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
    return Error(code, fmt::format(format, std::forward<Args>(args)...));
}

#define ARTEL_DEFINE_ERROR(name, code)                                             \
    template <class... Args>                                                       \
    [[nodiscard]] Error name(fmt::format_string<Args...> format, Args&&... args) { \
        return make_error(ErrorCode::code, format, std::forward<Args>(args)...);   \
    }
ARTEL_DEFINE_ERROR(invalid_argument, kInvalidArgument)        // bad input: file, flag, request
ARTEL_DEFINE_ERROR(not_found, kNotFound)                      // a named thing does not exist
ARTEL_DEFINE_ERROR(failed_precondition, kFailedPrecondition)  // not now: wrong state for this call
ARTEL_DEFINE_ERROR(resource_exhausted, kResourceExhausted)    // memory, pages, queue places
ARTEL_DEFINE_ERROR(unavailable, kUnavailable)                 // a peer is gone; may work later
ARTEL_DEFINE_ERROR(deadline_exceeded, kDeadlineExceeded)
ARTEL_DEFINE_ERROR(cancelled, kCancelled)
ARTEL_DEFINE_ERROR(unimplemented, kUnimplemented)  // known, but this build can't do it
ARTEL_DEFINE_ERROR(data_loss, kDataLoss)           // truncated or damaged bytes
ARTEL_DEFINE_ERROR(internal_error, kInternal)
ARTEL_DEFINE_ERROR(unauthenticated, kUnauthenticated)
ARTEL_DEFINE_ERROR(permission_denied, kPermissionDenied)
#undef ARTEL_DEFINE_ERROR

/// The same error with "`noun`: " in front of its message. Success stays success.
[[nodiscard]] Error with_context(const Error& error, std::string_view noun);

inline const Error& to_error(const Error& error) {
    return error;
}
template <class T>
Error to_error(const Result<T>& result) {
    return result.status();
}

}  // namespace artel

#define ARTEL_CONCAT_INNER(a, b) a##b
#define ARTEL_CONCAT(a, b) ARTEL_CONCAT_INNER(a, b)

/// Returns from the function with the error of `expression` (an Error or a Result), if it has one.
#define ARTEL_TRY(expression)                                                                \
    do {                                                                                     \
        if (::artel::Error artel_error_ = ::artel::to_error(expression); !artel_error_.ok()) \
            return artel_error_;                                                             \
    } while (false)

/// ARTEL_ASSIGN(auto index, read_index(path)): the value of a Result, or return its error.
#define ARTEL_ASSIGN(variable, expression) \
    ARTEL_ASSIGN_INNER(ARTEL_CONCAT(artel_result_, __LINE__), variable, expression)
#define ARTEL_ASSIGN_INNER(result, variable, expression) \
    auto result = (expression);                          \
    if (!result.ok()) return std::move(result).status(); \
    variable = *std::move(result)
