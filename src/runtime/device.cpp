// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <cstdlib>

#include "backends/registry.hpp"

namespace artel::runtime {

Result<std::unique_ptr<backends::Backend>> open_device(std::string_view name,
                                                       std::uint32_t threads) {
    const char* const isa = std::getenv("ARTEL_CPU_ISA");
    return backends::create_backend(name, {.threads = threads, .isa = isa != nullptr ? isa : ""});
}

}  // namespace artel::runtime
