// SPDX-License-Identifier: Apache-2.0
#include "graph/memory_plan.hpp"

#include <algorithm>

#include "base/byte_count.hpp"

namespace artel::graph {

namespace {

struct Lifetime {
    std::uint32_t tensor = 0;
    std::uint64_t bytes = 0;
    std::size_t first_op = 0;  // writes it
    std::size_t last_op = 0;   // reads it last
};

bool overlap_in_time(const Lifetime& a, const Lifetime& b) {
    return a.first_op <= b.last_op && b.first_op <= a.last_op;
}

Result<std::uint64_t> tensor_bytes(const Shape& shape, const RowCounts& rows) {
    const auto elements = checked_multiply(row_count(shape, rows), shape.columns);
    const auto bytes = elements ? checked_multiply(*elements, sizeof(float)) : std::nullopt;
    const auto padded = bytes ? checked_add(*bytes, kScratchAlignment - 1) : std::nullopt;
    if (!padded)
        return resource_exhausted("{} rows of {} columns are more than memory can hold",
                                  row_count(shape, rows), shape.columns);
    return *padded / kScratchAlignment * kScratchAlignment;
}

Result<std::vector<Lifetime>> lifetimes(const Graph& graph, const RowCounts& rows) {
    std::vector<Lifetime> all;
    std::vector<std::size_t> place(graph.tensors.size());  // in `all`, of scratch tensors
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        const OpTensors used = op_tensors(graph.ops[i]);
        for (const Tensor read : used.reads)
            if (read.is_valid() && graph.record(read).kind == TensorKind::Scratch)
                all[place[read.index]].last_op = i;
        for (const Tensor written : {used.writes, used.room}) {
            if (!written.is_valid() || graph.record(written).kind != TensorKind::Scratch) continue;
            ARTEL_ASSIGN(const std::uint64_t bytes, tensor_bytes(graph.shape(written), rows));
            place[written.index] = all.size();
            all.push_back({written.index, bytes, i, i});
        }
    }
    return all;
}

/// The lowest offset where `bytes` fit between the ranges taken, which are sorted by offset.
std::uint64_t lowest_gap(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& taken,
                         std::uint64_t bytes) {
    std::uint64_t offset = 0;
    for (const auto& [begin, end] : taken) {
        if (begin >= offset && begin - offset >= bytes) return offset;
        offset = std::max(offset, end);
    }
    return offset;
}

}  // namespace

Result<MemoryPlan> plan_memory(const Graph& graph, const RowCounts& rows) {
    ARTEL_ASSIGN(std::vector<Lifetime> pending, lifetimes(graph, rows));
    std::sort(pending.begin(), pending.end(), [](const Lifetime& a, const Lifetime& b) {
        return a.bytes != b.bytes ? a.bytes > b.bytes : a.tensor < b.tensor;
    });
    MemoryPlan plan;
    plan.offsets.assign(graph.tensors.size(), MemoryPlan::kNoPlace);
    std::vector<Lifetime> placed;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;  // begin, end
    for (const Lifetime& tensor : pending) {
        taken.clear();
        for (const Lifetime& other : placed)
            if (overlap_in_time(tensor, other)) {
                const std::uint64_t begin = plan.offsets[other.tensor];
                taken.emplace_back(begin, begin + other.bytes);
            }
        std::sort(taken.begin(), taken.end());
        const std::uint64_t offset = lowest_gap(taken, tensor.bytes);
        const auto end = checked_add(offset, tensor.bytes);
        if (!end) return resource_exhausted("scratch memory beyond 64 bits");
        plan.offsets[tensor.tensor] = offset;
        plan.bytes = std::max(plan.bytes, *end);
        placed.push_back(tensor);
    }
    return plan;
}

}  // namespace artel::graph
