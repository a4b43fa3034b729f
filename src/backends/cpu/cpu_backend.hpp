// SPDX-License-Identifier: Apache-2.0
// The "cpu" backend: this machine's processor, with the best instruction set it has or the one that
// is asked for, and a pool of threads. All its paths give the same bytes (graph/arithmetic.hpp).
// run() computes before it returns.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "backends/backend.hpp"
#include "base/result.hpp"

namespace artel::cpu {

struct CpuOptions {
    std::uint32_t threads = 1;
    std::string_view isa;  // "scalar", "avx2"; empty: the best
};

/// Errors: no threads or too many, an instruction set that is unknown or that this machine lacks.
Result<std::unique_ptr<backends::Backend>> create_cpu_backend(const CpuOptions& options);

}  // namespace artel::cpu
