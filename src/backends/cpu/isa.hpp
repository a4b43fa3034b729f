// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this machine can run, and the kernels of one.
#pragma once

#include <string_view>

#include "backends/cpu/kernels.hpp"
#include "base/result.hpp"

namespace artel::cpu {

std::string_view to_string(Isa isa);
/// The best set of this machine.
Isa best_isa();
/// `name`: "scalar", "avx2", or empty for the best. Errors: another name; a set this machine lacks.
Result<Isa> choose_isa(std::string_view name);
const Kernels& kernels_of(Isa isa);

}  // namespace artel::cpu
