// SPDX-License-Identifier: Apache-2.0
// THE list of backends: a new one is one line here.
#include "backends/registry.hpp"

#include <fmt/ranges.h>

#include "backends/cpu/cpu_backend.hpp"
#include "backends/reference/reference_backend.hpp"

namespace artel::backends {

namespace {

struct Entry {
    std::string_view name;
    Result<std::unique_ptr<Backend>> (*create)(const BackendOptions& options);
};

Result<std::unique_ptr<Backend>> create_reference(const BackendOptions& options) {
    if (!options.isa.empty() && options.isa != "scalar")
        return invalid_argument("the reference backend knows only scalar, not {}", options.isa);
    return reference::create_reference_backend();
}

Result<std::unique_ptr<Backend>> create_cpu(const BackendOptions& options) {
    return cpu::create_cpu_backend({.threads = options.threads, .isa = options.isa});
}

constexpr Entry kBackends[] = {
    {"cpu", create_cpu},
    {"reference", create_reference},
};

}  // namespace

std::vector<std::string_view> backend_names() {
    std::vector<std::string_view> names;
    for (const Entry& entry : kBackends) names.push_back(entry.name);
    return names;
}

Result<std::unique_ptr<Backend>> create_backend(std::string_view name,
                                                const BackendOptions& options) {
    if (options.threads == 0) return invalid_argument("0 threads, expected at least 1");
    for (const Entry& entry : kBackends)
        if (entry.name == name) return entry.create(options);
    return not_found("no backend {}, expected one of {}", name, fmt::join(backend_names(), ", "));
}

}  // namespace artel::backends
