// SPDX-License-Identifier: Apache-2.0
// Who holds what, as a table for people.
#pragma once

#include <string>

#include "cluster/request.hpp"

namespace artel::cli {

/// worker, layers, weights, state, memory; a line on context and predicted speed. Ends with a
/// newline.
std::string plan_table(const cluster::Health& health);

}  // namespace artel::cli
