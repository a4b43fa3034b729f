// SPDX-License-Identifier: Apache-2.0
// What the cpu backend refuses. What it computes is in tests/conformance.
#include "backends/cpu/cpu_backend.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "backends/cpu/isa.hpp"

namespace artel::cpu {
namespace {

using quant::FormatId;

std::unique_ptr<backends::Backend> backend() {
    return std::move(create_cpu_backend({.threads = 2, .isa = "scalar"})).value();
}

TEST(CpuBackend, ForcesAnInstructionSetOrSaysWhyNot) {
    EXPECT_EQ(backend()->describe().isa, "scalar");
    EXPECT_EQ(backend()->describe().threads, 2U);
    const auto best = create_cpu_backend({.threads = 1, .isa = ""});
    ASSERT_TRUE(best.ok());
    EXPECT_EQ((*best)->describe().isa, to_string(best_isa()));
    EXPECT_EQ((*best)->describe().arithmetic_class, backend()->describe().arithmetic_class);
    const auto unknown = create_cpu_backend({.threads = 1, .isa = "avx9"});
    EXPECT_EQ(unknown.status().code(), ErrorCode::kInvalidArgument);
    const auto avx2 = create_cpu_backend({.threads = 1, .isa = "avx2"});
    EXPECT_EQ(avx2.ok(), best_isa() == Isa::Avx2);
}

TEST(CpuBackend, RefusesZeroAndFarTooManyThreads) {
    EXPECT_FALSE(create_cpu_backend({.threads = 0, .isa = ""}).ok());
    EXPECT_FALSE(create_cpu_backend({.threads = 1'000'000, .isa = ""}).ok());
}

TEST(CpuBackend, RefusesMoreMemoryThanThereIs) {
    const auto buffer = backend()->allocate(std::uint64_t{1} << 60);
    EXPECT_EQ(buffer.status().code(), ErrorCode::kResourceExhausted);
    EXPECT_TRUE(backend()->allocate(0).ok());
}

TEST(CpuBackend, RefusesBytesOutsideABuffer) {
    const auto cpu = backend();
    auto buffer = std::move(cpu->allocate(100)).value();
    std::vector<std::byte> bytes(8);
    EXPECT_TRUE(cpu->upload(*buffer, 92, bytes).ok());
    EXPECT_FALSE(cpu->upload(*buffer, 93, bytes).ok());
    EXPECT_FALSE(cpu->download(*buffer, ~std::uint64_t{0}, bytes).ok());
}

TEST(CpuBackend, LaysOutWholeBlocksOnly) {
    const auto cpu = backend();
    EXPECT_FALSE(cpu->layout(FormatId::Q4_K, 8, 128).ok());
    EXPECT_FALSE(cpu->layout(FormatId::Q4_0, std::uint64_t{1} << 60, 1U << 20).ok());
    const auto layout = cpu->layout(FormatId::Q4_1, 9, 64);
    ASSERT_TRUE(layout.ok());
    EXPECT_EQ(layout->bytes, 16 * 2 * 20U);  // two groups of eight rows, two blocks each
}

TEST(CpuBackend, RefusesRowsOutsideAWeightAndPartsOfRows) {
    const auto cpu = backend();
    const auto layout = std::move(cpu->layout(FormatId::Q8_0, 9, 32)).value();
    auto buffer = std::move(cpu->allocate(layout.bytes)).value();
    const std::vector<std::byte> row(34);
    EXPECT_TRUE(cpu->upload_rows(*buffer, layout, 8, row).ok());
    EXPECT_FALSE(cpu->upload_rows(*buffer, layout, 9, row).ok());
    EXPECT_FALSE(cpu->upload_rows(*buffer, layout, ~std::uint64_t{0}, row).ok());
    EXPECT_FALSE(cpu->upload_rows(*buffer, layout, 0, std::vector<std::byte>(33)).ok());
    auto small = std::move(cpu->allocate(layout.bytes - 1)).value();
    EXPECT_FALSE(cpu->upload_rows(*small, layout, 0, row).ok());
}

}  // namespace
}  // namespace artel::cpu
