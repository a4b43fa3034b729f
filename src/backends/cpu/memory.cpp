// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/memory.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "base/byte_count.hpp"

namespace artel::cpu {

namespace {
constexpr std::uint64_t kHugePage = 2U << 20;
}

Result<std::unique_ptr<CpuBuffer>> CpuBuffer::create(std::uint64_t bytes) {
    if (bytes == 0) return std::unique_ptr<CpuBuffer>(new CpuBuffer(nullptr, 0));
    ARTEL_ASSIGN(const backends::MemoryAmounts memory, machine_memory());
    if (bytes > memory.available)
        return resource_exhausted("{} wanted, {} of memory available", format_byte_count(bytes),
                                  format_byte_count(memory.available));
    void* const data = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return resource_exhausted("the system gives no {} of memory", format_byte_count(bytes));
    // Only advice: without huge pages all works, with more misses of the address cache.
    if (bytes >= kHugePage) ::madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
    return std::unique_ptr<CpuBuffer>(new CpuBuffer(static_cast<std::byte*>(data), bytes));
}

CpuBuffer::~CpuBuffer() {
    if (bytes_ != 0) ::munmap(data_, static_cast<std::size_t>(bytes_));
}

Result<backends::MemoryAmounts> machine_memory() {
    std::ifstream file("/proc/meminfo");
    backends::MemoryAmounts amounts;
    std::string line;
    while (std::getline(file, line)) {
        unsigned long long kib = 0;
        if (std::sscanf(line.c_str(), "MemTotal: %llu kB", &kib) == 1) amounts.total = kib * 1024;
        if (std::sscanf(line.c_str(), "MemAvailable: %llu kB", &kib) == 1)
            amounts.available = kib * 1024;
    }
    if (amounts.total == 0) return unavailable("/proc/meminfo has no MemTotal");
    return amounts;
}

}  // namespace artel::cpu
