// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <absl/strings/str_cat.h>

namespace artel {

Error with_context(const Error& error, std::string_view noun) {
    if (error.ok()) return error;
    return Error(error.code(),
                 absl::StrCat(absl::string_view(noun.data(), noun.size()), ": ", error.message()));
}

}  // namespace artel
