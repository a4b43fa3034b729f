// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/isa.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace artel::cpu {

#if defined(__x86_64__)
namespace {

/// Leaf 1, ECX bit 29 (Intel SDM, CPUID); Clang 16 has no __builtin_cpu_supports for it.
bool has_f16c() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && ((ecx >> 29U) & 1U) != 0;
}

}  // namespace
#endif

std::string_view to_string(Isa isa) {
    return isa == Isa::Avx2 ? "avx2" : "scalar";
}

Isa best_isa() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        return Isa::Avx2;
#endif
    return Isa::Scalar;
}

Result<Isa> choose_isa(std::string_view name) {
    if (name.empty()) return best_isa();
    if (name == "scalar") return Isa::Scalar;
    if (name != "avx2")
        return invalid_argument(
            "no instruction set '{}'; known are scalar and avx2 (ARTEL_CPU_ISA)", name);
    if (best_isa() != Isa::Avx2)
        return failed_precondition(
            "this CPU lacks AVX2, FMA or F16C, so avx2 can't be forced (ARTEL_CPU_ISA)");
    return Isa::Avx2;
}

const Kernels& kernels_of(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::Avx2) return avx2::kKernels;
#endif
    return scalar::kKernels;
}

}  // namespace artel::cpu
