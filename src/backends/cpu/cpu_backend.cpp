// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_backend.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_graph.hpp"
#include "backends/cpu/isa.hpp"
#include "backends/cpu/memory.hpp"
#include "backends/cpu/packed_format.hpp"
#include "backends/cpu/packed_weights.hpp"
#include "base/byte_count.hpp"
#include "base/thread_pool.hpp"

namespace artel::cpu {

namespace {

using backends::Buffer;
using backends::WeightLayout;

constexpr std::uint32_t kThreadsMax = 1024;

Error check_range(std::uint64_t bytes, std::uint64_t offset, std::uint64_t count) {
    const auto end = checked_add(offset, count);
    if (!end || *end > bytes)
        return invalid_argument("{} bytes at {} are outside a buffer of {}", count, offset, bytes);
    return ok();
}

class CpuBackend final : public backends::Backend {
  public:
    CpuBackend(Isa isa, std::uint32_t threads) : kernels_(kernels_of(isa)), pool_(threads) {}

    backends::DeviceDescription describe() const override {
        const std::string isa(to_string(kernels_.isa));
        return {.backend = "cpu",
                .device = fmt::format("CPU, {}, {} threads", isa, pool_.thread_count()),
                .arithmetic_class = "cpu",
                .isa = isa,
                .threads = pool_.thread_count()};
    }
    Result<backends::MemoryAmounts> memory() const override { return machine_memory(); }

    Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes) override {
        return CpuBuffer::create(bytes);
    }

    Error upload(Buffer& buffer, std::uint64_t offset, std::span<const std::byte> bytes) override {
        ARTEL_TRY(check_range(buffer.bytes(), offset, bytes.size()));
        if (!bytes.empty())
            std::memcpy(static_cast<CpuBuffer&>(buffer).data() + offset, bytes.data(),
                        bytes.size());
        return ok();
    }

    Error download(const Buffer& buffer, std::uint64_t offset,
                   std::span<std::byte> bytes) const override {
        ARTEL_TRY(check_range(buffer.bytes(), offset, bytes.size()));
        if (!bytes.empty())
            std::memcpy(bytes.data(), static_cast<const CpuBuffer&>(buffer).data() + offset,
                        bytes.size());
        return ok();
    }

    Result<WeightLayout> layout(quant::FormatId format, std::uint64_t rows,
                                std::uint64_t columns) const override;
    Error upload_rows(Buffer& buffer, const WeightLayout& layout, std::uint64_t first_row,
                      std::span<const std::byte> bytes) override;

    Error supports(const graph::Graph& graph) const override;
    Result<std::unique_ptr<backends::PreparedGraph>> prepare(
        graph::Graph graph, const graph::RowCounts& rows_max,
        const backends::Bindings& bindings) override {
        ARTEL_TRY(supports(graph));
        return CpuGraph::create(std::move(graph), rows_max, bindings, pool_.thread_count());
    }

    Error run(backends::PreparedGraph& prepared, const graph::RunInputs& inputs) override {
        auto& graph = static_cast<CpuGraph&>(prepared);
        const graph::RowCounts rows = inputs.rows();
        if (rows.step > graph.rows_max().step || rows.logits > graph.rows_max().logits)
            return invalid_argument("a step of {} rows and {} logits, prepared for {} and {}",
                                    rows.step, rows.logits, graph.rows_max().step,
                                    graph.rows_max().logits);
        graph.run(kernels_, pool_, inputs);
        return ok();
    }
    Error wait() override { return ok(); }

  private:
    const Kernels& kernels_;
    ThreadPool pool_;
};

Result<WeightLayout> CpuBackend::layout(quant::FormatId format, std::uint64_t rows,
                                        std::uint64_t columns) const {
    const auto file_row = quant::row_bytes(format, columns);
    // Packing makes a row at most 2.2 times as long and adds seven rows: no overflow below.
    const auto padded = checked_add(rows, kGroupRows);
    const auto bytes = file_row && padded ? checked_multiply(*file_row, *padded) : std::nullopt;
    if (!bytes || !checked_multiply(*bytes, 3))
        return invalid_argument("{} of ({}, {}): not whole blocks, or too large",
                                quant::format_traits(format).name, rows, columns);
    WeightLayout layout{.format = format, .rows = rows, .columns = columns};
    if (format == quant::FormatId::F32 && rows == 1) {
        layout.bytes = *file_row;  // norms and biases are read as vectors
        return layout;
    }
    layout.kind = static_cast<std::uint32_t>(LayoutKind::Packed);
    layout.rows_a_group = kGroupRows;
    layout.bytes = packed_bytes(format, rows, columns);
    return layout;
}

Error CpuBackend::upload_rows(Buffer& buffer, const WeightLayout& layout, std::uint64_t first_row,
                              std::span<const std::byte> bytes) {
    const auto row_bytes = quant::row_bytes(layout.format, layout.columns);
    if (!row_bytes || *row_bytes == 0 || bytes.size() % *row_bytes != 0)
        return invalid_argument("{} bytes are not whole rows of {} {} columns", bytes.size(),
                                layout.columns, quant::format_traits(layout.format).name);
    const std::uint64_t count = bytes.size() / *row_bytes;
    if (first_row > layout.rows || count > layout.rows - first_row)
        return invalid_argument("rows {} to {} of a weight of {}", first_row, first_row + count,
                                layout.rows);
    ARTEL_TRY(check_range(buffer.bytes(), 0, layout.bytes));
    std::byte* memory = static_cast<CpuBuffer&>(buffer).data();
    if (layout.kind == static_cast<std::uint32_t>(LayoutKind::Plain)) {
        std::memcpy(memory + first_row * *row_bytes, bytes.data(), bytes.size());
        return ok();
    }
    // A piece is one group, since rows of a group share bytes.
    const std::uint64_t first_group = first_row / kGroupRows;
    const std::uint64_t groups = (first_row + count + kGroupRows - 1) / kGroupRows - first_group;
    pool_.parallel_for(static_cast<std::uint32_t>(groups), [&](std::uint32_t g, std::uint32_t) {
        const std::uint64_t group = first_group + g;
        const std::uint64_t begin = std::max(group * kGroupRows, first_row);
        const std::uint64_t end = std::min((group + 1) * kGroupRows, first_row + count);
        for (std::uint64_t row = begin; row < end; ++row)
            pack_row(layout.format, bytes.data() + (row - first_row) * *row_bytes, row,
                     layout.columns, memory);
    });
    return ok();
}

Error CpuBackend::supports(const graph::Graph& graph) const {
    for (const graph::Weight& weight : graph.weights) {
        const auto layout = this->layout(weight.format, weight.rows, weight.columns);
        if (!layout.ok()) return with_context(layout.status(), weight.name);
    }
    return ok();  // every op of graph/op.hpp has kernels here
}

}  // namespace

Result<std::unique_ptr<backends::Backend>> create_cpu_backend(const CpuOptions& options) {
    if (options.threads == 0 || options.threads > kThreadsMax)
        return invalid_argument("{} threads; 1 to {} are possible", options.threads, kThreadsMax);
    ARTEL_ASSIGN(const Isa isa, choose_isa(options.isa));
    return std::make_unique<CpuBackend>(isa, options.threads);
}

}  // namespace artel::cpu
