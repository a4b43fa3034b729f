// SPDX-License-Identifier: Apache-2.0
// CpuGraph: a graph bound to weights and state in this machine's memory, with scratch for steps of
// at most some rows, and the walk over its ops. Within a step it keeps what several ops share: the
// last rounded activations (query, key and value read one x) and the rotations of rope.
// Used by one thread at a time; the pool's threads take part inside run().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/backend.hpp"
#include "backends/cpu/attention.hpp"
#include "backends/cpu/experts.hpp"
#include "backends/cpu/kernels.hpp"
#include "backends/cpu/matmul.hpp"
#include "backends/cpu/memory.hpp"
#include "base/thread_pool.hpp"
#include "graph/memory_plan.hpp"
#include "graph/rope_angles.hpp"

namespace artel::cpu {

/// What WeightLayout::kind says here.
enum class LayoutKind : std::uint32_t { Plain = 0, Packed = 1 };

class CpuGraph final : public backends::PreparedGraph {
  public:
    /// Errors: bindings that are not those of the graph, no memory for scratch.
    static Result<std::unique_ptr<CpuGraph>> create(graph::Graph graph,
                                                    const graph::RowCounts& rows_max,
                                                    const backends::Bindings& bindings,
                                                    std::uint32_t threads);

    const graph::Graph& graph() const override { return graph_; }
    const graph::RowCounts& rows_max() const { return rows_max_; }
    /// `inputs` were checked.
    void run(const Kernels& kernels, ThreadPool& pool, const graph::RunInputs& inputs);

  private:
    struct RopeTable {
        const graph::Rope* like = nullptr;       // the first op with these angles
        std::vector<double> frequencies;         // (rope_dim / 2); empty before the first step
        std::vector<graph::Rotation> rotations;  // (rows, rope_dim / 2)
        bool is_current = false;                 // rotations are those of this step
    };
    struct BoundWeight {
        const std::byte* memory = nullptr;
        bool is_packed = false;
    };
    struct Step {
        const Kernels& kernels;
        ThreadPool& pool;
        const graph::RunInputs& inputs;
        graph::RowCounts rows;
    };

    CpuGraph() = default;
    Error bind_weights(std::span<const backends::Bindings::BoundWeight> weights);
    Error bind_state(std::span<backends::Buffer* const> state);
    Error allocate_scratch(std::uint32_t threads);
    void number_rope_tables();

    std::size_t rows_of(const Step& step, graph::Tensor tensor) const;
    std::size_t count_of(const Step& step, graph::Tensor tensor) const;
    float* data(const Step& step, graph::Tensor tensor);
    const float* read(const Step& step, graph::Tensor tensor) const;
    const float* vector_of(graph::Tensor weight) const;
    const float* vector_of(const std::optional<graph::Tensor>& weight) const;
    WeightRows weight_rows(graph::Tensor weight) const;
    WeightRows weight_rows(const std::optional<graph::Tensor>& weight) const;
    std::uint64_t piece_count(const graph::Op& op) const;
    RopeTable& rope_table(const Step& step, const graph::Rope& op);

    void compute(const Step& step, const graph::EmbedRows& op);
    void compute(const Step& step, const graph::RmsNorm& op);
    void compute(const Step& step, const graph::MatMul& op);
    void compute(const Step& step, const graph::Rope& op);
    void compute(const Step& step, const graph::StoreState& op);
    void compute(const Step& step, const graph::Attention& op);
    void compute(const Step& step, const graph::Add& op);
    void compute(const Step& step, const graph::Multiply& op);
    void compute(const Step& step, const graph::Scale& op);
    void compute(const Step& step, const graph::GatedActivation& op);
    void compute(const Step& step, const graph::SelectRows& op);
    void compute(const Step& step, const graph::SoftCap& op);
    void compute(const Step& step, const graph::LayerNorm& op);
    void compute(const Step& step, const graph::Activate& op);
    void compute(const Step& step, const graph::RoutedExperts& op);
    void compute(const Step& step, const graph::HeadMatMul& op);
    void compute(const Step& step, const graph::SliceHeads& op);
    void compute(const Step& step, const graph::JoinHeads& op);

    graph::Graph graph_;
    graph::RowCounts rows_max_;
    graph::MemoryPlan plan_;
    std::vector<std::size_t> place_;    // by tensor: index in RunInputs::inputs or outputs
    std::vector<BoundWeight> weights_;  // as Graph::weights
    std::vector<std::vector<LayerPages>> layers_;  // (groups, layers)
    std::vector<RopeTable> ropes_;
    std::unique_ptr<CpuBuffer> scratch_;
    std::unique_ptr<CpuBuffer> rounded_;  // RoundedPiece
    std::vector<float> attention_room_;   // (threads, attention_room_stride_)
    std::size_t attention_room_stride_ = 0;
    ExpertsRoom experts_room_;
    graph::Tensor rounded_tensor_;  // what rounded_ holds in this step
};

}  // namespace artel::cpu
