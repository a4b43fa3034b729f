// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.hpp"

#include <cmath>

#include "base/byte_count.hpp"
#include "base/check.hpp"

namespace artel::graph {

namespace {

// Far above any model, far below where a product of two would leave 64 bits.
constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 31;
constexpr std::uint64_t kColumnsMax = std::uint64_t{1} << 24;
constexpr std::uint32_t kHeadsMax = 1U << 16;

bool is_float(quant::FormatId format) {
    return format == quant::FormatId::F32 || format == quant::FormatId::F16 ||
           format == quant::FormatId::BF16;
}

}  // namespace

GraphBuilder::GraphBuilder(const WeightIndex& weights, std::span<const StateGroupSpec> groups,
                           StateType state_type)
    : index_(weights), is_stored_(groups.size()) {
    for (const StateGroupSpec& spec : groups) {
        if (spec.kind == StateKind::Windowed && spec.window == 0)
            fail(invalid_argument("a window of 0 positions, expected at least 1"));
        graph_.groups.push_back({.spec = spec, .type = state_type, .layers = {}});
        if (spec.kind != StateKind::Windowed) graph_.groups.back().spec.window = 0;
    }
}

void GraphBuilder::fail(Error error) {
    if (error_.ok()) error_ = std::move(error);
}

Tensor GraphBuilder::new_tensor(TensorKind kind, Shape shape) {
    graph_.tensors.push_back({.kind = kind, .shape = shape});
    return {static_cast<std::uint32_t>(graph_.tensors.size() - 1)};
}

const Shape& GraphBuilder::shape(Tensor x) const {
    static constexpr Shape kNone{};
    return has_failed() ? kNone : graph_.shape(x);
}

/// Whether an op may go on: no error so far. An invalid tensor without one is a bug in the caller.
bool GraphBuilder::accept(std::string_view op, std::initializer_list<Tensor> tensors) {
    if (has_failed()) return false;
    for (const Tensor tensor : tensors)
        if (!tensor.is_valid() || tensor.index >= graph_.tensors.size()) {
            fail(internal_error("{}: a tensor of no graph was given", op));
            return false;
        }
    return true;
}

bool GraphBuilder::expect(bool holds, std::string_view op, std::string_view rule, Tensor x) {
    if (holds) return true;
    const TensorRecord& record = graph_.record(x);
    const std::string name =
        record.kind == TensorKind::Weight ? graph_.weight(x).name + " " : std::string();
    fail(invalid_argument("{}: {}{}, expected {}", op, name, to_string(record.shape), rule));
    return false;
}

bool GraphBuilder::expect_vector(std::string_view op, Tensor x, std::uint64_t columns) {
    const bool is_weight = graph_.record(x).kind == TensorKind::Weight;
    return expect(is_weight && graph_.weight(x).format == quant::FormatId::F32, op,
                  "an F32 vector of the file", x) &&
           expect(graph_.shape(x) == Shape{RowKind::Fixed, 1, columns}, op,
                  fmt::format("(1, {})", columns), x);
}

Tensor GraphBuilder::input(std::uint64_t columns) {
    if (!accept("input", {})) return {};
    if (columns == 0 || columns > kColumnsMax) {
        fail(invalid_argument("input: {} columns, expected 1 to {}", columns, kColumnsMax));
        return {};
    }
    const Tensor x = new_tensor(TensorKind::Input, {RowKind::Step, 0, columns});
    graph_.inputs.push_back(x);
    return x;
}

bool GraphBuilder::has_weight(const std::string& name) const {
    return index_.find(name).has_value();
}

Tensor GraphBuilder::find_weight(const std::string& name, std::uint64_t rows,
                                 std::uint64_t columns) {
    if (!accept(name, {})) return {};
    const std::optional<WeightEntry> entry = index_.find(name);
    if (!entry) {
        fail(not_found("{}: the file has no such tensor", name));
        return {};
    }
    const auto format = quant::find_format(entry->gguf_type);
    if (!format) {
        fail(unimplemented("{}: tensors of GGUF type {} can't be computed with", name,
                           entry->gguf_type));
        return {};
    }
    if (entry->rows != rows || entry->columns != columns) {
        fail(invalid_argument("{}: ({}, {}) in the file, expected ({}, {}) by the model's numbers",
                              name, entry->rows, entry->columns, rows, columns));
        return {};
    }
    const auto row_bytes = quant::row_bytes(*format, columns);
    if (rows == 0 || columns == 0 || rows > kRowsMax || columns > kColumnsMax || !row_bytes) {
        fail(invalid_argument("{}: ({}, {}) is no shape of format {}", name, rows, columns,
                              quant::format_traits(*format).name));
        return {};
    }
    const auto [place, is_new] =
        weight_numbers_.try_emplace(name, static_cast<std::uint32_t>(graph_.weights.size()));
    if (is_new) graph_.weights.push_back({name, *format, rows, columns, rows * *row_bytes});
    const Tensor x = new_tensor(TensorKind::Weight, {RowKind::Fixed, rows, columns});
    graph_.tensors[x.index].weight = place->second;
    return x;
}

Tensor GraphBuilder::weight(const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    return find_weight(name, rows, columns);
}

Tensor GraphBuilder::vector(const std::string& name, std::uint64_t columns) {
    const Tensor x = find_weight(name, 1, columns);
    if (!accept(name, {x}) || !expect_vector("vector", x, columns)) return {};
    return x;
}

Tensor GraphBuilder::weight_rows(Tensor weight, std::uint64_t first, std::uint64_t count) {
    if (!accept("weight_rows", {weight})) return {};
    const TensorRecord whole = graph_.record(weight);
    const bool fits = whole.kind == TensorKind::Weight && count > 0 && first < whole.shape.rows &&
                      count <= whole.shape.rows - first;
    if (!expect(fits, "weight_rows",
                fmt::format("a weight with rows {} to {}", first, first + count), weight))
        return {};
    const Tensor x = new_tensor(TensorKind::Weight, {RowKind::Fixed, count, whole.shape.columns});
    graph_.tensors[x.index].weight = whole.weight;
    graph_.tensors[x.index].first_row = whole.first_row + first;
    return x;
}

StateSlot GraphBuilder::add_layer_state(std::uint32_t group, const LayerState& layer) {
    if (!accept("add_layer_state", {})) return {};
    if (group >= graph_.groups.size()) {
        fail(internal_error("state group {} of {}", group, graph_.groups.size()));
        return {};
    }
    StateGroup& target = graph_.groups[group];
    if (target.spec.kind == StateKind::Slot) {
        fail(unimplemented("a group of slots holds no keys and values"));
        return {};
    }
    const bool is_sane = layer.kv_head_count > 0 && layer.kv_head_count <= kHeadsMax &&
                         layer.key_dim > 0 && layer.key_dim <= kHeadsMax && layer.value_dim > 0 &&
                         layer.value_dim <= kHeadsMax;
    if (is_sane && layer.values_in_keys && layer.value_dim > layer.key_dim) {
        fail(invalid_argument("{} value columns within {} key columns", layer.value_dim,
                              layer.key_dim));
        return {};
    }
    if (!is_sane) {
        fail(invalid_argument("{} kv heads with {} key and {} value columns, expected 1 to {} each",
                              layer.kv_head_count, layer.key_dim, layer.value_dim, kHeadsMax));
        return {};
    }
    target.layers.push_back(layer);
    is_stored_[group].push_back(false);
    return {group, static_cast<std::uint32_t>(target.layers.size() - 1)};
}

Tensor GraphBuilder::embed_rows(Tensor weight, float scale) {
    constexpr std::string_view kOp = "embed_rows";
    if (!accept(kOp, {weight})) return {};
    if (!expect(graph_.record(weight).kind == TensorKind::Weight, kOp, "a weight", weight))
        return {};
    const Shape& table = graph_.shape(weight);
    if (graph_.vocabulary_size == 0 || table.rows < graph_.vocabulary_size)
        graph_.vocabulary_size = table.rows;
    const Tensor out = new_tensor(TensorKind::Scratch, {RowKind::Step, 0, table.columns});
    graph_.ops.emplace_back(EmbedRows{.weight = weight, .out = out, .scale = scale});
    return out;
}

Tensor GraphBuilder::rms_norm(Tensor x, Tensor weight, float epsilon) {
    constexpr std::string_view kOp = "rms_norm";
    if (!accept(kOp, {x, weight})) return {};
    const Shape in = graph_.shape(x);
    const std::uint64_t width = graph_.shape(weight).columns;
    if (!expect_vector(kOp, weight, width) ||
        !expect(in.row_kind != RowKind::Fixed && in.columns % width == 0, kOp,
                fmt::format("rows of a multiple of {} columns", width), x))
        return {};
    if (!expect_epsilon(kOp, epsilon)) return {};
    const Tensor out = new_tensor(TensorKind::Scratch, in);
    graph_.ops.emplace_back(RmsNorm{.x = x, .weight = weight, .out = out, .epsilon = epsilon});
    return out;
}

bool GraphBuilder::expect_epsilon(std::string_view op, float epsilon) {
    if (epsilon >= 0 && std::isfinite(epsilon)) return true;
    fail(invalid_argument("{}: epsilon {}, expected a small number", op, epsilon));
    return false;
}

Tensor GraphBuilder::layer_norm(Tensor x, Tensor weight, std::optional<Tensor> bias,
                                float epsilon) {
    constexpr std::string_view kOp = "layer_norm";
    if (!accept(kOp, {x, weight})) return {};
    const Shape in = graph_.shape(x);
    if (!expect(in.row_kind != RowKind::Fixed, kOp, "computed rows", x) ||
        !expect_vector(kOp, weight, in.columns) || !expect_epsilon(kOp, epsilon))
        return {};
    if (bias && (!accept(kOp, {*bias}) || !expect_vector(kOp, *bias, in.columns))) return {};
    const Tensor out = new_tensor(TensorKind::Scratch, in);
    graph_.ops.emplace_back(
        LayerNorm{.x = x, .weight = weight, .bias = bias, .out = out, .epsilon = epsilon});
    return out;
}

Tensor GraphBuilder::matmul(Tensor weight, Tensor x, const MatMulOptions& options) {
    constexpr std::string_view kOp = "matmul";
    if (!accept(kOp, {weight, x})) return {};
    if (!expect(graph_.record(weight).kind == TensorKind::Weight, kOp, "a weight", weight))
        return {};
    const Shape matrix = graph_.shape(weight);
    const Shape in = graph_.shape(x);
    if (!expect(
            in.row_kind != RowKind::Fixed && in.columns == matrix.columns, kOp,
            fmt::format("rows of {} columns for {}", matrix.columns, graph_.weight(weight).name),
            x))
        return {};
    if (options.scale && (!accept(kOp, {*options.scale}) || !expect_vector(kOp, *options.scale, 1)))
        return {};
    if (options.bias &&
        (!accept(kOp, {*options.bias}) || !expect_vector(kOp, *options.bias, matrix.rows)))
        return {};
    const Tensor out = new_tensor(TensorKind::Scratch, {in.row_kind, 0, matrix.rows});
    const bool is_exact = is_float(graph_.weight(weight).format);
    graph_.ops.emplace_back(
        MatMul{.x = x,
               .weight = weight,
               .out = out,
               .scale = options.scale,
               .bias = options.bias,
               .activations = is_exact ? Activations::F32 : Activations::I8x32});
    return out;
}

Tensor GraphBuilder::rope(Tensor x, const RopeOptions& options) {
    constexpr std::string_view kOp = "rope";
    if (!accept(kOp, {x})) return {};
    const Shape in = graph_.shape(x);
    const std::uint64_t columns = std::uint64_t{options.head_count} * options.head_dim;
    if (!expect(in.row_kind == RowKind::Step && columns > 0 && in.columns == columns, kOp,
                fmt::format("rows of {} heads of {}", options.head_count, options.head_dim), x))
        return {};
    if (options.rope_dim == 0 || options.rope_dim % 2 != 0 || options.rope_dim > options.head_dim) {
        fail(
            invalid_argument("{}: {} columns to turn in heads of {}, expected an even number up to "
                             "that",
                             kOp, options.rope_dim, options.head_dim));
        return {};
    }
    const bool is_sane = std::isfinite(options.base) && options.base > 0 &&
                         std::isfinite(options.frequency_scale) && options.frequency_scale > 0 &&
                         std::isfinite(options.magnitude);
    if (!is_sane) {
        fail(invalid_argument("{}: base {} and frequency scale {}, expected positive numbers", kOp,
                              options.base, options.frequency_scale));
        return {};
    }
    if (options.factors && (!accept(kOp, {*options.factors}) ||
                            !expect_vector(kOp, *options.factors, options.rope_dim / 2)))
        return {};
    const Tensor out = new_tensor(TensorKind::Scratch, in);
    graph_.ops.emplace_back(Rope{.x = x,
                                 .out = out,
                                 .head_count = options.head_count,
                                 .head_dim = options.head_dim,
                                 .rope_dim = options.rope_dim,
                                 .style = options.style,
                                 .base = options.base,
                                 .frequency_scale = options.frequency_scale,
                                 .ramp = options.ramp,
                                 .magnitude = options.magnitude,
                                 .factors = options.factors});
    return out;
}

bool GraphBuilder::expect_slot(std::string_view op, StateSlot slot) {
    if (slot.group < graph_.groups.size() && slot.layer < graph_.groups[slot.group].layers.size())
        return true;
    fail(
        internal_error("{}: layer {} of state group {} was not added", op, slot.layer, slot.group));
    return false;
}

void GraphBuilder::store_state(StateSlot slot, Tensor keys, Tensor values) {
    constexpr std::string_view kOp = "store_state";
    if (!accept(kOp, {keys, values}) || !expect_slot(kOp, slot)) return;
    const LayerState& layer = graph_.layer_state(slot);
    const auto rows_of = [&](Tensor x, std::uint32_t columns) {
        const Shape wanted{RowKind::Step, 0, std::uint64_t{layer.kv_head_count} * columns};
        return expect(graph_.shape(x) == wanted, kOp, to_string(wanted), x);
    };
    if (!rows_of(keys, layer.key_dim) || !rows_of(values, layer.value_dim)) return;
    is_stored_[slot.group][slot.layer] = true;
    graph_.ops.emplace_back(StoreState{.slot = slot, .keys = keys, .values = values});
}

Tensor GraphBuilder::attention(StateSlot slot, Tensor query, const AttentionOptions& options) {
    constexpr std::string_view kOp = "attention";
    if (!accept(kOp, {query}) || !expect_slot(kOp, slot)) return {};
    const LayerState& layer = graph_.layer_state(slot);
    const std::uint32_t heads = options.head_count;
    if (heads == 0 || heads > kHeadsMax || heads % layer.kv_head_count != 0) {
        fail(invalid_argument("{}: {} query heads, expected a multiple of {} kv heads", kOp, heads,
                              layer.kv_head_count));
        return {};
    }
    const Shape wanted{RowKind::Step, 0, std::uint64_t{heads} * layer.key_dim};
    if (!expect(graph_.shape(query) == wanted, kOp, to_string(wanted), query)) return {};
    if (!std::isfinite(options.scale) || !std::isfinite(options.softcap) || options.softcap < 0) {
        fail(invalid_argument("{}: scale {} and softcap {}, expected finite numbers", kOp,
                              options.scale, options.softcap));
        return {};
    }
    const auto& sinks = options.sinks;
    if (sinks && (!accept(kOp, {*sinks}) || !expect_vector(kOp, *sinks, heads))) return {};
    if (!is_stored_[slot.group][slot.layer]) {
        fail(internal_error("{}: nothing was stored for the layer before", kOp));
        return {};
    }
    const Tensor out =
        new_tensor(TensorKind::Scratch, {RowKind::Step, 0, std::uint64_t{heads} * layer.value_dim});
    graph_.ops.emplace_back(Attention{.query = query,
                                      .sinks = sinks,
                                      .out = out,
                                      .slot = slot,
                                      .head_count = heads,
                                      .scale = options.scale,
                                      .window = graph_.groups[slot.group].spec.window,
                                      .softcap = options.softcap});
    return out;
}

Tensor GraphBuilder::same_shape_op(std::string_view op, Tensor a, Tensor b) {
    if (!accept(op, {a, b})) return {};
    const Shape& wanted = graph_.shape(a);
    if (!expect(wanted.row_kind != RowKind::Fixed, op, "computed rows", a) ||
        !expect(graph_.shape(b) == wanted, op, to_string(wanted), b))
        return {};
    return new_tensor(TensorKind::Scratch, Shape(wanted));
}

Tensor GraphBuilder::add(Tensor a, Tensor b) {
    const Tensor out = same_shape_op("add", a, b);
    if (out.is_valid()) graph_.ops.emplace_back(Add{.a = a, .b = b, .out = out});
    return out;
}

Tensor GraphBuilder::multiply(Tensor a, Tensor b) {
    const Tensor out = same_shape_op("multiply", a, b);
    if (out.is_valid()) graph_.ops.emplace_back(Multiply{.a = a, .b = b, .out = out});
    return out;
}

Tensor GraphBuilder::scale(Tensor x, float factor) {
    const Tensor out = same_shape_op("scale", x, x);
    if (out.is_valid()) graph_.ops.emplace_back(Scale{.x = x, .out = out, .factor = factor});
    return out;
}

Tensor GraphBuilder::gated_activation(GateKind kind, Tensor gate, Tensor up) {
    const Tensor out = same_shape_op("gated_activation", gate, up);
    if (out.is_valid())
        graph_.ops.emplace_back(GatedActivation{.gate = gate, .up = up, .out = out, .kind = kind});
    return out;
}

Tensor GraphBuilder::activate(ActivationKind kind, Tensor x) {
    const Tensor out = same_shape_op("activate", x, x);
    if (out.is_valid()) graph_.ops.emplace_back(Activate{.x = x, .out = out, .kind = kind});
    return out;
}

Tensor GraphBuilder::soft_cap(Tensor x, float cap) {
    const Tensor out = same_shape_op("soft_cap", x, x);
    if (!out.is_valid()) return {};
    if (!std::isfinite(cap) || cap <= 0) {
        fail(invalid_argument("soft_cap: cap {}, expected a positive number", cap));
        return {};
    }
    graph_.ops.emplace_back(SoftCap{.x = x, .out = out, .cap = cap});
    return out;
}

bool GraphBuilder::expect_heads(std::string_view op, Tensor x, std::uint32_t head_count) {
    const Shape& shape = graph_.shape(x);
    return expect(
        shape.row_kind == RowKind::Step && head_count > 0 && shape.columns % head_count == 0, op,
        fmt::format("rows of {} heads", head_count), x);
}

Tensor GraphBuilder::head_matmul(Tensor weight, Tensor x, std::uint32_t head_count) {
    constexpr std::string_view kOp = "head_matmul";
    if (!accept(kOp, {weight, x}) || !expect_heads(kOp, x, head_count)) return {};
    const Shape matrix = graph_.shape(weight);
    const bool fits = graph_.record(weight).kind == TensorKind::Weight &&
                      matrix.rows % head_count == 0 &&
                      matrix.columns * head_count == graph_.shape(x).columns;
    if (!expect(fits, kOp,
                fmt::format("{} matrices of {} columns", head_count,
                            graph_.shape(x).columns / head_count),
                weight))
        return {};
    const Tensor out = new_tensor(TensorKind::Scratch, {RowKind::Step, 0, matrix.rows});
    const Tensor room = new_tensor(TensorKind::Scratch,
                                   {RowKind::Step, 0, matrix.columns + matrix.rows / head_count});
    const bool is_exact = is_float(graph_.weight(weight).format);
    graph_.ops.emplace_back(
        HeadMatMul{.x = x,
                   .weight = weight,
                   .out = out,
                   .room = room,
                   .head_count = head_count,
                   .activations = is_exact ? Activations::F32 : Activations::I8x32});
    return out;
}

Tensor GraphBuilder::slice_heads(Tensor x, std::uint32_t head_count, std::uint32_t first,
                                 std::uint32_t count) {
    constexpr std::string_view kOp = "slice_heads";
    if (!accept(kOp, {x}) || !expect_heads(kOp, x, head_count)) return {};
    const std::uint64_t head_dim = graph_.shape(x).columns / head_count;
    if (!expect(count > 0 && first < head_dim && count <= head_dim - first, kOp,
                fmt::format("heads with columns {} to {}", first, std::uint64_t{first} + count), x))
        return {};
    const Tensor out =
        new_tensor(TensorKind::Scratch, {RowKind::Step, 0, std::uint64_t{head_count} * count});
    graph_.ops.emplace_back(
        SliceHeads{.x = x, .out = out, .head_count = head_count, .first = first});
    return out;
}

Tensor GraphBuilder::join_heads(Tensor a, Tensor b, std::uint32_t head_count) {
    constexpr std::string_view kOp = "join_heads";
    if (!accept(kOp, {a, b}) || !expect_heads(kOp, a, head_count) ||
        !expect_heads(kOp, b, head_count))
        return {};
    const std::uint64_t columns = graph_.shape(a).columns + graph_.shape(b).columns;
    const Tensor out = new_tensor(TensorKind::Scratch, {RowKind::Step, 0, columns});
    graph_.ops.emplace_back(JoinHeads{.a = a, .b = b, .out = out, .head_count = head_count});
    return out;
}

bool GraphBuilder::expect_routing(const Routing& routing) {
    const std::uint32_t groups = routing.groups;
    const bool has_groups = groups > 0 && routing.expert_count % groups == 0 &&
                            routing.groups_used > 0 && routing.groups_used <= groups;
    const std::uint64_t reachable =
        has_groups ? std::uint64_t{routing.expert_count / groups} * routing.groups_used : 0;
    if (routing.used_count > 0 && routing.used_count <= reachable && std::isfinite(routing.scale))
        return true;
    fail(invalid_argument("{} of {} experts in {} of {} groups, scaled by {}: no such choice",
                          routing.used_count, routing.expert_count, routing.groups_used, groups,
                          routing.scale));
    return false;
}

bool GraphBuilder::expect_experts(Tensor x, Tensor logits, const ExpertsOptions& options) {
    constexpr std::string_view kOp = "routed_experts";
    if (!accept(kOp, {x, logits, options.gate, options.up, options.down}) ||
        !expect_routing(options.routing))
        return false;
    const std::uint64_t experts = options.routing.expert_count;
    const std::uint64_t width = graph_.shape(x).columns;
    const std::uint64_t hidden = graph_.shape(options.down).columns;
    const auto has_shape = [&](Tensor tensor, const Shape& shape) {
        const bool is_weight = graph_.record(tensor).kind == TensorKind::Weight;
        return expect(
            graph_.shape(tensor) == shape && is_weight == (shape.row_kind == RowKind::Fixed), kOp,
            to_string(shape), tensor);
    };
    const auto has_bias = [&](const std::optional<Tensor>& bias, std::uint64_t columns) {
        return !bias ||
               (accept(kOp, {*bias}) && has_shape(*bias, {RowKind::Fixed, experts, columns}) &&
                expect(graph_.weight(*bias).format == quant::FormatId::F32, kOp, "F32 rows",
                       *bias));
    };
    const auto& bias = options.selection_bias;
    if (bias && (!accept(kOp, {*bias}) || !expect_vector(kOp, *bias, experts))) return false;
    return has_shape(x, {RowKind::Step, 0, width}) &&
           has_shape(logits, {RowKind::Step, 0, experts}) &&
           has_shape(options.gate, {RowKind::Fixed, experts * hidden, width}) &&
           has_shape(options.up, {RowKind::Fixed, experts * hidden, width}) &&
           has_shape(options.down, {RowKind::Fixed, experts * width, hidden}) &&
           has_bias(options.gate_bias, hidden) && has_bias(options.up_bias, hidden) &&
           has_bias(options.down_bias, width);
}

Tensor GraphBuilder::routed_experts(Tensor x, Tensor logits, const ExpertsOptions& options) {
    if (!expect_experts(x, logits, options)) return {};
    const std::uint64_t width = graph_.shape(x).columns;
    const std::uint64_t hidden = graph_.shape(options.down).columns;
    const Tensor out = new_tensor(TensorKind::Scratch, {RowKind::Step, 0, width});
    const Tensor room = new_tensor(TensorKind::Scratch, {RowKind::Step, 0, width + 2 * hidden});
    graph_.ops.emplace_back(RoutedExperts{.x = x,
                                          .logits = logits,
                                          .selection_bias = options.selection_bias,
                                          .gate = options.gate,
                                          .up = options.up,
                                          .down = options.down,
                                          .gate_bias = options.gate_bias,
                                          .up_bias = options.up_bias,
                                          .down_bias = options.down_bias,
                                          .out = out,
                                          .room = room,
                                          .routing = options.routing,
                                          .kind = options.kind});
    return out;
}

Tensor GraphBuilder::select_rows(Tensor x) {
    constexpr std::string_view kOp = "select_rows";
    if (!accept(kOp, {x})) return {};
    const Shape in = graph_.shape(x);
    if (!expect(in.row_kind == RowKind::Step, kOp, "rows of the step", x)) return {};
    const Tensor out = new_tensor(TensorKind::Scratch, {RowKind::Logits, 0, in.columns});
    graph_.ops.emplace_back(SelectRows{.x = x, .out = out});
    return out;
}

void GraphBuilder::output(Tensor x) {
    if (!accept("output", {x})) return;
    TensorRecord& record = graph_.tensors[x.index];
    if (!expect(record.kind == TensorKind::Scratch, "output", "a computed value, once", x)) return;
    record.kind = TensorKind::Output;
    graph_.outputs.push_back(x);
}

Result<Graph> GraphBuilder::finish() {
    ARTEL_TRY(error_);
    weight_numbers_.clear();
    is_stored_.clear();
    error_ = internal_error("the builder has finished");
    return std::move(graph_);
}

}  // namespace artel::graph
