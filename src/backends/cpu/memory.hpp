// SPDX-License-Identifier: Apache-2.0
// CpuBuffer: memory from the system, zeroed, aligned to a page and in huge pages where the system
// gives them. Nothing is committed before it is written. Also: how much memory the machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/backend.hpp"

namespace artel::cpu {

class CpuBuffer final : public backends::Buffer {
  public:
    /// Error: ResourceExhausted, with both numbers.
    static Result<std::unique_ptr<CpuBuffer>> create(std::uint64_t bytes);
    ~CpuBuffer() override;
    CpuBuffer(const CpuBuffer&) = delete;
    CpuBuffer& operator=(const CpuBuffer&) = delete;

    std::uint64_t bytes() const override { return bytes_; }
    std::byte* data() { return data_; }
    const std::byte* data() const { return data_; }

  private:
    CpuBuffer(std::byte* data, std::uint64_t bytes) : data_(data), bytes_(bytes) {}
    std::byte* data_;
    std::uint64_t bytes_;
};

/// From /proc/meminfo.
Result<backends::MemoryAmounts> machine_memory();

}  // namespace artel::cpu
