// SPDX-License-Identifier: Apache-2.0
// GraphBuilder: records ops by being called as if it computed. It makes ALL checks of shapes and
// formats, since both come from files. The first error sticks: calls after it return invalid
// tensors and record nothing, and finish() returns it; so architectures need no error code of their
// own. One builder makes one graph: a stage's layers, or one layer alone for the planner's dry run.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "graph/graph.hpp"

namespace artel::graph {

/// A tensor as the file's index describes it; GGUF's first dimension is columns, the product of the
/// others is rows.
struct WeightEntry {
    std::uint32_t gguf_type = 0;
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
};

/// The tensors of a model file, by name. Implemented over the GGUF index by models/.
class WeightIndex {
  public:
    virtual ~WeightIndex() = default;
    virtual std::optional<WeightEntry> find(std::string_view name) const = 0;
};

struct MatMulOptions {
    std::optional<Tensor> scale;
    std::optional<Tensor> bias;
};
struct RopeOptions {
    std::uint32_t head_count = 0;
    std::uint32_t head_dim = 0;
    std::uint32_t rope_dim = 0;
    RopeStyle style = RopeStyle::Interleaved;
    float base = 10000;
    float frequency_scale = 1;
    YarnRamp ramp = {};
    float magnitude = 1;
    std::optional<Tensor> factors;
};
struct AttentionOptions {
    std::uint32_t head_count = 0;
    float scale = 1;
    float softcap = 0;
    std::optional<Tensor> sinks = std::nullopt;
};

struct ExpertsOptions {
    std::optional<Tensor> selection_bias;
    Tensor gate, up, down;
    std::optional<Tensor> gate_bias, up_bias, down_bias;
    Routing routing = {};
    GateKind kind = GateKind::Silu;
};

class GraphBuilder {
  public:
    /// `weights` must outlive the builder. `groups` are those of the whole model.
    GraphBuilder(const WeightIndex& weights, std::span<const StateGroupSpec> groups,
                 StateType state_type);

    /// Activations that come from outside: (R, columns).
    Tensor input(std::uint64_t columns);
    /// A matrix of the file, (rows, columns), of any supported format. Error: absent, other shape.
    Tensor weight(const std::string& name, std::uint64_t rows, std::uint64_t columns);
    /// A vector of the file, (1, columns), F32.
    Tensor vector(const std::string& name, std::uint64_t columns);
    bool has_weight(const std::string& name) const;
    /// Rows [first, first + count) of a weight, as a weight.
    Tensor weight_rows(Tensor weight, std::uint64_t first, std::uint64_t count);
    /// Adds a layer to a group. Error: no such group, zero sizes, a Slot group.
    StateSlot add_layer_state(std::uint32_t group, const LayerState& layer);

    Tensor embed_rows(Tensor weight, float scale = 1);
    Tensor rms_norm(Tensor x, Tensor weight, float epsilon);
    Tensor layer_norm(Tensor x, Tensor weight, std::optional<Tensor> bias, float epsilon);
    Tensor matmul(Tensor weight, Tensor x, const MatMulOptions& options = {});
    Tensor rope(Tensor x, const RopeOptions& options);
    void store_state(StateSlot slot, Tensor keys, Tensor values);
    /// The window is the group's. Error: nothing was stored for the slot before.
    Tensor attention(StateSlot slot, Tensor query, const AttentionOptions& options);
    Tensor add(Tensor a, Tensor b);
    Tensor multiply(Tensor a, Tensor b);
    Tensor scale(Tensor x, float factor);
    Tensor gated_activation(GateKind kind, Tensor gate, Tensor up);
    Tensor activate(ActivationKind kind, Tensor x);
    /// x (R, heads * n), weight (heads * m, n) -> (R, heads * m)
    Tensor head_matmul(Tensor weight, Tensor x, std::uint32_t head_count);
    /// Columns of each head. (R, heads * n) -> (R, heads * count)
    Tensor slice_heads(Tensor x, std::uint32_t head_count, std::uint32_t first,
                       std::uint32_t count);
    /// Heads of a, each followed by that of b.
    Tensor join_heads(Tensor a, Tensor b, std::uint32_t head_count);
    /// `logits`: the router's, of each row. Shapes are those of RoutedExperts.
    Tensor routed_experts(Tensor x, Tensor logits, const ExpertsOptions& options);
    Tensor select_rows(Tensor x);
    Tensor soft_cap(Tensor x, float cap);
    /// Marks a computed value as one that run() gives back.
    void output(Tensor x);

    const Shape& shape(Tensor x) const;
    bool has_failed() const { return !error_.ok(); }
    /// For an architecture that finds a mistake of its own, e.g. in the model's numbers.
    void fail(Error error);
    /// The graph, or the first error. The builder is empty afterwards.
    Result<Graph> finish();

  private:
    bool accept(std::string_view op, std::initializer_list<Tensor> tensors);
    bool expect(bool holds, std::string_view op, std::string_view rule, Tensor x);
    bool expect_heads(std::string_view op, Tensor x, std::uint32_t head_count);
    bool expect_routing(const Routing& routing);
    bool expect_experts(Tensor x, Tensor logits, const ExpertsOptions& options);
    bool expect_vector(std::string_view op, Tensor x, std::uint64_t columns);
    bool expect_epsilon(std::string_view op, float epsilon);
    bool expect_slot(std::string_view op, StateSlot slot);
    Tensor new_tensor(TensorKind kind, Shape shape);
    Tensor find_weight(const std::string& name, std::uint64_t rows, std::uint64_t columns);
    Tensor same_shape_op(std::string_view op, Tensor a, Tensor b);

    const WeightIndex& index_;
    Graph graph_;
    std::map<std::string, std::uint32_t> weight_numbers_;  // name to index in graph_.weights
    std::vector<std::vector<bool>> is_stored_;             // (groups, layers)
    Error error_;
};

}  // namespace artel::graph
