// SPDX-License-Identifier: Apache-2.0
// Which backends this binary has, by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "base/result.hpp"

namespace artel::backends {

struct BackendOptions {
    std::uint32_t threads = 1;
    std::string isa;  // "scalar", "avx2"; empty: the best this machine has
};

/// "reference", "cpu".
std::vector<std::string_view> backend_names();
/// Errors: no such backend, an instruction set this machine lacks, no threads.
Result<std::unique_ptr<Backend>> create_backend(std::string_view name,
                                                const BackendOptions& options);

}  // namespace artel::backends
