// SPDX-License-Identifier: Apache-2.0
// The reference backend: slow and obviously right, the judge of all others (tests/conformance). One
// thread, naive loops, sums in double, weights stored as in the file. Activations and state are
// rounded by the ops' own rules, so that only the order of sums differs from any other backend.
#pragma once

#include <memory>

#include "backends/backend.hpp"

namespace artel::reference {

std::unique_ptr<backends::Backend> create_reference_backend();

}  // namespace artel::reference
