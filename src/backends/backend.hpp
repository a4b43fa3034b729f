// SPDX-License-Identifier: Apache-2.0
// Backend: one device that holds weights and state and runs graphs. Weights may be re-laid while
// they load (layout() says how a tensor is stored); pages of state have one layout everywhere
// (graph/state.hpp). A stage runs on one backend: where supports() refuses, the planner places the
// layer elsewhere; there is no fallback op by op.
// Threads: one thread at a time uses a backend and what it made. Everything that it made must be
// destroyed before it. run() trusts its inputs: graph::check_run_inputs comes before, in the stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "graph/graph.hpp"

namespace artel::backends {

struct DeviceDescription {
    std::string backend;           // "cpu"
    std::string device;            // for people: model, instruction set, threads
    std::string arithmetic_class;  // equal strings promise equal bytes: "cpu" for all CPU paths
    std::string isa;               // instruction set in use: "scalar", "avx2"
    std::uint32_t threads = 1;
};

struct MemoryAmounts {
    std::uint64_t total = 0;
    std::uint64_t available = 0;  // without swapping
};

/// Memory that a backend owns: a weight, the pages of a state group. Aligned to 64 bytes.
class Buffer {
  public:
    virtual ~Buffer() = default;
    virtual std::uint64_t bytes() const = 0;
};

/// How a backend stores a weight; kinds above 0 are its own business.
struct WeightLayout {
    quant::FormatId format = quant::FormatId::F32;
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    std::uint32_t kind = 0;          // 0: as in the file
    std::uint32_t rows_a_group = 1;  // rows that are stored interleaved
    std::uint64_t bytes = 0;         // to allocate
};

/// What a graph is bound to. Buffers outlive the prepared graph.
struct Bindings {
    struct BoundWeight {
        const Buffer* buffer = nullptr;
        WeightLayout layout;
    };
    std::span<const BoundWeight> weights;  // in the order of Graph::weights
    std::span<Buffer* const> state;        // in the order of Graph::groups; null: no layers here
};

/// A graph made ready for steps of at most some rows. Owns its scratch memory.
class PreparedGraph {
  public:
    virtual ~PreparedGraph() = default;
    virtual const graph::Graph& graph() const = 0;
};

class Backend {
  public:
    virtual ~Backend() = default;

    virtual DeviceDescription describe() const = 0;
    virtual Result<MemoryAmounts> memory() const = 0;

    /// Zero bytes is allowed. Contents are anything. Error: ResourceExhausted.
    virtual Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes) = 0;
    /// Bytes as they are, for state. Error: outside the buffer.
    virtual Error upload(Buffer& buffer, std::uint64_t offset,
                         std::span<const std::byte> bytes) = 0;
    virtual Error download(const Buffer& buffer, std::uint64_t offset,
                           std::span<std::byte> bytes) const = 0;

    /// Error: columns that are not whole blocks, sizes beyond 64 bits.
    virtual Result<WeightLayout> layout(quant::FormatId format, std::uint64_t rows,
                                        std::uint64_t columns) const = 0;
    /// Whole rows as in the file, from `first_row` on; any order, any count, each row once. The
    /// buffer has layout.bytes bytes. Error: outside the weight, or not whole rows.
    virtual Error upload_rows(Buffer& buffer, const WeightLayout& layout, std::uint64_t first_row,
                              std::span<const std::byte> bytes) = 0;

    /// Ok, or which op can't run here and why.
    virtual Error supports(const graph::Graph& graph) const = 0;
    /// Error: not supported, bindings of other sizes than the graph's, no memory.
    virtual Result<std::unique_ptr<PreparedGraph>> prepare(graph::Graph graph,
                                                           const graph::RowCounts& rows_max,
                                                           const Bindings& bindings) = 0;
    /// Begins a step; outputs are written when wait() has returned. `prepared` is this backend's.
    virtual Error run(PreparedGraph& prepared, const graph::RunInputs& inputs) = 0;
    /// Until the last run() is done. Error: the device failed.
    virtual Error wait() = 0;
};

}  // namespace artel::backends
