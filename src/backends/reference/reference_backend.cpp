// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/reference_backend.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/memory.hpp"
#include "backends/reference/reference_ops.hpp"
#include "base/byte_count.hpp"

namespace artel::reference {

namespace {

using backends::Bindings;
using backends::Buffer;
using backends::WeightLayout;
using cpu::CpuBuffer;

class ReferenceGraph final : public backends::PreparedGraph {
  public:
    ReferenceGraph(graph::Graph graph, const Bindings& bindings) : graph_(std::move(graph)) {
        for (const Bindings::BoundWeight& weight : bindings.weights) {
            const auto& buffer = static_cast<const CpuBuffer&>(*weight.buffer);
            weights_.emplace_back(buffer.data(), buffer.bytes());
        }
        for (Buffer* const buffer : bindings.state) {
            auto* const pages = static_cast<CpuBuffer*>(buffer);
            state_.push_back(pages == nullptr
                                 ? std::span<std::byte>()
                                 : std::span<std::byte>(pages->data(), pages->bytes()));
        }
    }
    const graph::Graph& graph() const override { return graph_; }

    void run(const graph::RunInputs& inputs) const {
        std::vector<std::vector<float>> scratch(graph_.tensors.size());
        StepValues step{graph_, inputs, weights_, state_, {}, {}};
        step.values.resize(graph_.tensors.size());
        step.read_only.resize(graph_.tensors.size());
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
            const graph::Shape& shape = graph_.tensors[i].shape;
            if (graph_.tensors[i].kind != graph::TensorKind::Scratch) continue;
            scratch[i].resize(graph::row_count(shape, inputs.rows()) * shape.columns);
            step.values[i] = scratch[i];
        }
        for (std::size_t i = 0; i < graph_.outputs.size(); ++i)
            step.values[graph_.outputs[i].index] = inputs.outputs[i];
        for (std::size_t i = 0; i < graph_.tensors.size(); ++i) step.read_only[i] = step.values[i];
        for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
            step.read_only[graph_.inputs[i].index] = inputs.inputs[i];
        for (const graph::Op& op : graph_.ops)
            std::visit([&](const auto& plain) { compute(plain, step); }, op);
    }

  private:
    graph::Graph graph_;
    std::vector<std::span<const std::byte>> weights_;
    std::vector<std::span<std::byte>> state_;
};

Error check_range(const Buffer& buffer, std::uint64_t offset, std::uint64_t count) {
    if (offset > buffer.bytes() || count > buffer.bytes() - offset)
        return invalid_argument("bytes {} to {} of a buffer of {}", offset, offset + count,
                                buffer.bytes());
    return ok();
}

Error check_bindings(const graph::Graph& graph, const Bindings& bindings) {
    if (bindings.weights.size() != graph.weights.size() ||
        bindings.state.size() != graph.groups.size())
        return invalid_argument("{} weights and {} groups bound, expected {} and {}",
                                bindings.weights.size(), bindings.state.size(),
                                graph.weights.size(), graph.groups.size());
    for (std::size_t i = 0; i < graph.weights.size(); ++i) {
        const graph::Weight& weight = graph.weights[i];
        const Bindings::BoundWeight& bound = bindings.weights[i];
        if (bound.buffer == nullptr || bound.buffer->bytes() < weight.bytes ||
            bound.layout.bytes != weight.bytes || bound.layout.format != weight.format)
            return invalid_argument("{}: bound to memory of another size or format", weight.name);
    }
    for (std::size_t i = 0; i < graph.groups.size(); ++i)
        if (bindings.state[i] == nullptr && !graph.groups[i].layers.empty())
            return invalid_argument("state group {} has no memory", i);
    return ok();
}

class ReferenceBackend final : public backends::Backend {
  public:
    backends::DeviceDescription describe() const override {
        return {.backend = "reference",
                .device = "plain loops, one thread",
                .arithmetic_class = "reference",
                .isa = "scalar",
                .threads = 1};
    }
    Result<backends::MemoryAmounts> memory() const override { return cpu::machine_memory(); }

    Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes) override {
        ARTEL_ASSIGN(std::unique_ptr<CpuBuffer> buffer, CpuBuffer::create(bytes));
        return std::unique_ptr<Buffer>(std::move(buffer));
    }
    Error upload(Buffer& buffer, std::uint64_t offset, std::span<const std::byte> bytes) override {
        ARTEL_TRY(check_range(buffer, offset, bytes.size()));
        if (bytes.empty()) return ok();
        std::memcpy(static_cast<CpuBuffer&>(buffer).data() + offset, bytes.data(), bytes.size());
        return ok();
    }
    Error download(const Buffer& buffer, std::uint64_t offset,
                   std::span<std::byte> bytes) const override {
        ARTEL_TRY(check_range(buffer, offset, bytes.size()));
        if (bytes.empty()) return ok();
        std::memcpy(bytes.data(), static_cast<const CpuBuffer&>(buffer).data() + offset,
                    bytes.size());
        return ok();
    }
    Result<WeightLayout> layout(quant::FormatId format, std::uint64_t rows,
                                std::uint64_t columns) const override {
        const auto row = quant::row_bytes(format, columns);
        const auto bytes = row ? checked_multiply(*row, rows) : std::nullopt;
        if (!bytes)
            return invalid_argument("({}, {}) is no shape of format {}", rows, columns,
                                    quant::format_traits(format).name);
        return WeightLayout{.format = format, .rows = rows, .columns = columns, .bytes = *bytes};
    }
    Error upload_rows(Buffer& buffer, const WeightLayout& layout, std::uint64_t first_row,
                      std::span<const std::byte> bytes) override {
        const std::uint64_t row = layout.rows == 0 ? 0 : layout.bytes / layout.rows;
        if (row == 0 || bytes.size() % row != 0 || first_row > layout.rows ||
            bytes.size() / row > layout.rows - first_row)
            return invalid_argument("{} bytes at row {} of {} rows of {} bytes", bytes.size(),
                                    first_row, layout.rows, row);
        return upload(buffer, first_row * row, bytes);
    }
    Error supports(const graph::Graph&) const override { return ok(); }

    Result<std::unique_ptr<backends::PreparedGraph>> prepare(graph::Graph graph,
                                                             const graph::RowCounts&,
                                                             const Bindings& bindings) override {
        ARTEL_TRY(check_bindings(graph, bindings));
        return std::unique_ptr<backends::PreparedGraph>(
            std::make_unique<ReferenceGraph>(std::move(graph), bindings));
    }
    Error run(backends::PreparedGraph& prepared, const graph::RunInputs& inputs) override {
        static_cast<ReferenceGraph&>(prepared).run(inputs);
        return ok();
    }
    Error wait() override { return ok(); }
};

}  // namespace

std::unique_ptr<backends::Backend> create_reference_backend() {
    return std::make_unique<ReferenceBackend>();
}

}  // namespace artel::reference
