// SPDX-License-Identifier: Apache-2.0
// The device that a process computes with. ARTEL_CPU_ISA in the environment forces an instruction
// set ("scalar", "avx2"), for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "backends/backend.hpp"
#include "base/result.hpp"

namespace artel::runtime {

/// Errors: those of backends::create_backend.
Result<std::unique_ptr<backends::Backend>> open_device(std::string_view name,
                                                       std::uint32_t threads);

}  // namespace artel::runtime
