// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_graph.hpp"

#include <algorithm>

#include "backends/cpu/packed_format.hpp"
#include "backends/cpu/packed_weights.hpp"
#include "base/byte_count.hpp"
#include "graph/arithmetic.hpp"

namespace artel::cpu {

namespace {

/// What a rope op needs besides x: ops that agree on it share rotations.
bool have_equal_angles(const graph::Graph& graph, const graph::Rope& a, const graph::Rope& b) {
    if (a.factors.has_value() != b.factors.has_value()) return false;
    if (a.factors && graph.record(*a.factors).weight != graph.record(*b.factors).weight)
        return false;
    return a.rope_dim == b.rope_dim && a.base == b.base && a.frequency_scale == b.frequency_scale &&
           a.ramp == b.ramp && a.magnitude == b.magnitude;
}

/// Turns the pairs of one head; columns past rope_dim are copied.
void rotate_head(const graph::Rope& op, const graph::Rotation* rotations, const float* x,
                 float* out) {
    const std::size_t pairs = op.rope_dim / 2;
    const bool is_interleaved = op.style == graph::RopeStyle::Interleaved;
    for (std::size_t i = 0; i < pairs; ++i) {
        const std::size_t first = is_interleaved ? 2 * i : i;
        const std::size_t second = is_interleaved ? 2 * i + 1 : i + pairs;
        const float a = x[first];
        const float b = x[second];
        const auto [cosine, sine] = rotations[i];
        out[first] = graph::fused_multiply_add(a, cosine, -(b * sine));
        out[second] = graph::fused_multiply_add(a, sine, b * cosine);
    }
    std::copy(x + op.rope_dim, x + op.head_dim, out + op.rope_dim);
}

/// body(first, count) for runs of [0, count), on the pool where it is worth waking.
template <class Body>
void for_chunks(ThreadPool& pool, std::size_t count, const Body& body) {
    constexpr std::size_t kChunk = 4096;
    const auto chunks = static_cast<std::uint32_t>((count + kChunk - 1) / kChunk);
    pool.parallel_for(chunks, [&](std::uint32_t chunk, std::uint32_t) {
        const std::size_t first = chunk * kChunk;
        body(first, std::min(kChunk, count - first));
    });
}

Error check_layout(const graph::Weight& weight, const backends::WeightLayout& layout) {
    if (layout.format != weight.format || layout.rows != weight.rows ||
        layout.columns != weight.columns)
        return invalid_argument("{}: bound memory is {} ({}, {}), the graph wants {} ({}, {})",
                                weight.name, quant::format_traits(layout.format).name, layout.rows,
                                layout.columns, quant::format_traits(weight.format).name,
                                weight.rows, weight.columns);
    return ok();
}

}  // namespace

Result<std::unique_ptr<CpuGraph>> CpuGraph::create(graph::Graph graph,
                                                   const graph::RowCounts& rows_max,
                                                   const backends::Bindings& bindings,
                                                   std::uint32_t threads) {
    std::unique_ptr<CpuGraph> prepared(new CpuGraph());
    prepared->graph_ = std::move(graph);
    prepared->rows_max_ = rows_max;
    ARTEL_TRY(prepared->bind_weights(bindings.weights));
    ARTEL_TRY(prepared->bind_state(bindings.state));
    ARTEL_TRY(prepared->allocate_scratch(threads));
    prepared->number_rope_tables();
    return prepared;
}

Error CpuGraph::bind_weights(std::span<const backends::Bindings::BoundWeight> weights) {
    if (weights.size() != graph_.weights.size())
        return invalid_argument("{} weights bound, the graph has {}", weights.size(),
                                graph_.weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const backends::WeightLayout& layout = weights[i].layout;
        ARTEL_TRY(check_layout(graph_.weights[i], layout));
        const auto* buffer = dynamic_cast<const CpuBuffer*>(weights[i].buffer);
        if (buffer == nullptr || buffer->bytes() < layout.bytes)
            return invalid_argument("{}: its memory is not of this backend or below {} bytes",
                                    graph_.weights[i].name, layout.bytes);
        weights_.push_back(
            {buffer->data(), layout.kind == static_cast<std::uint32_t>(LayoutKind::Packed)});
    }
    return ok();
}

Error CpuGraph::bind_state(std::span<backends::Buffer* const> state) {
    if (state.size() != graph_.groups.size())
        return invalid_argument("{} state groups bound, the graph has {}", state.size(),
                                graph_.groups.size());
    layers_.resize(state.size());
    for (std::uint32_t g = 0; g < state.size(); ++g) {
        const graph::StateGroup& group = graph_.groups[g];
        if (group.layers.empty()) continue;
        const graph::PageLayout layout = graph::page_layout(group);
        auto* buffer = dynamic_cast<CpuBuffer*>(state[g]);
        if (buffer == nullptr || buffer->bytes() < layout.page_bytes)
            return invalid_argument("state group {}: no memory of this backend for one page of {}",
                                    g, format_byte_count(layout.page_bytes));
        for (std::size_t i = 0; i < group.layers.size(); ++i)
            layers_[g].push_back({.pages = buffer->data(),
                                  .page_bytes = layout.page_bytes,
                                  .place = layout.layers[i],
                                  .layer = group.layers[i],
                                  .type = group.type,
                                  .group = g});
    }
    return ok();
}

Error CpuGraph::allocate_scratch(std::uint32_t threads) {
    ARTEL_ASSIGN(plan_, graph::plan_memory(graph_, rows_max_));
    ARTEL_ASSIGN(scratch_, CpuBuffer::create(plan_.bytes));
    place_.assign(graph_.tensors.size(), 0);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) place_[graph_.inputs[i].index] = i;
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) place_[graph_.outputs[i].index] = i;
    std::uint64_t pieces = 0;
    for (const graph::Op& op : graph_.ops) pieces = std::max(pieces, piece_count(op));
    for (const auto& group : graph_.groups)
        for (const auto& layer : group.layers)
            attention_room_stride_ = std::max(attention_room_stride_, attention_room(layer));
    ARTEL_ASSIGN(rounded_, CpuBuffer::create(pieces * sizeof(RoundedPiece)));
    attention_room_.resize(threads * attention_room_stride_);
    return ok();
}

/// Rounded pieces of activations that an op needs at once.
std::uint64_t CpuGraph::piece_count(const graph::Op& op) const {
    const auto pieces = [&](graph::Tensor x, std::uint64_t columns) {
        return graph::row_count(graph_.shape(x), rows_max_) * (columns / kPieceColumns);
    };
    if (const auto* matmul = std::get_if<graph::MatMul>(&op))
        if (matmul->activations == graph::Activations::I8x32)
            return pieces(matmul->x, graph_.shape(matmul->x).columns);
    if (const auto* experts = std::get_if<graph::RoutedExperts>(&op))
        return pieces(experts->x, std::max(graph_.shape(experts->x).columns,
                                           graph_.shape(experts->down).columns));
    if (const auto* heads = std::get_if<graph::HeadMatMul>(&op))
        if (heads->activations == graph::Activations::I8x32)
            return pieces(heads->x, graph_.shape(heads->weight).columns);
    return 0;
}

void CpuGraph::number_rope_tables() {
    for (const graph::Op& op : graph_.ops) {
        const auto* rope = std::get_if<graph::Rope>(&op);
        if (rope == nullptr) continue;
        const bool is_known = std::any_of(ropes_.begin(), ropes_.end(), [&](const auto& table) {
            return have_equal_angles(graph_, *table.like, *rope);
        });
        if (!is_known) ropes_.emplace_back().like = rope;
    }
}

void CpuGraph::run(const Kernels& kernels, ThreadPool& pool, const graph::RunInputs& inputs) {
    rounded_tensor_ = {};
    for (RopeTable& table : ropes_) table.is_current = false;
    const Step step{kernels, pool, inputs, inputs.rows()};
    for (const graph::Op& op : graph_.ops)
        std::visit([&](const auto& typed) { compute(step, typed); }, op);
}

std::size_t CpuGraph::rows_of(const Step& step, graph::Tensor tensor) const {
    return graph::row_count(graph_.shape(tensor), step.rows);
}

std::size_t CpuGraph::count_of(const Step& step, graph::Tensor tensor) const {
    return rows_of(step, tensor) * graph_.shape(tensor).columns;
}

float* CpuGraph::data(const Step& step, graph::Tensor tensor) {
    if (graph_.record(tensor).kind == graph::TensorKind::Output)
        return step.inputs.outputs[place_[tensor.index]].data();
    return reinterpret_cast<float*>(scratch_->data() + plan_.offsets[tensor.index]);
}

const float* CpuGraph::read(const Step& step, graph::Tensor tensor) const {
    switch (graph_.record(tensor).kind) {
        case graph::TensorKind::Input:
            return step.inputs.inputs[place_[tensor.index]].data();
        case graph::TensorKind::Output:
            return step.inputs.outputs[place_[tensor.index]].data();
        case graph::TensorKind::Weight:
            return vector_of(tensor);
        case graph::TensorKind::Scratch:
            break;
    }
    return reinterpret_cast<const float*>(scratch_->data() + plan_.offsets[tensor.index]);
}

const float* CpuGraph::vector_of(graph::Tensor weight) const {
    return reinterpret_cast<const float*>(weights_[graph_.record(weight).weight].memory);
}

const float* CpuGraph::vector_of(const std::optional<graph::Tensor>& weight) const {
    return weight ? vector_of(*weight) : nullptr;
}

WeightRows CpuGraph::weight_rows(graph::Tensor weight) const {
    const graph::TensorRecord& record = graph_.record(weight);
    const BoundWeight& bound = weights_[record.weight];
    return {.packed = bound.memory,
            .format = graph_.weight(weight).format,
            .is_packed = bound.is_packed,
            .first_row = record.first_row,
            .count = record.shape.rows,
            .columns = record.shape.columns};
}

WeightRows CpuGraph::weight_rows(const std::optional<graph::Tensor>& weight) const {
    return weight ? weight_rows(*weight) : WeightRows{};
}

void CpuGraph::compute(const Step& step, const graph::EmbedRows& op) {
    const WeightRows weight = weight_rows(op.weight);
    float* out = data(step, op.out);  // (R, columns)
    const auto rows = static_cast<std::uint32_t>(step.rows.step);
    step.pool.parallel_for(rows, [&](std::uint32_t row, std::uint32_t) {
        float* target = out + row * weight.columns;
        const std::size_t source = weight.first_row + step.inputs.tokens[row];
        if (weight.is_packed)
            decode_packed_row(weight.format, weight.packed, source, weight.columns, target);
        else
            std::copy_n(reinterpret_cast<const float*>(weight.packed), weight.columns, target);
        step.kernels.scale(target, op.scale, weight.columns, target);
    });
}

void CpuGraph::compute(const Step& step, const graph::RmsNorm& op) {
    const std::size_t width = graph_.shape(op.weight).columns;
    const float* x = read(step, op.x);
    const float* weight = vector_of(op.weight);
    float* out = data(step, op.out);
    const auto runs = static_cast<std::uint32_t>(count_of(step, op.x) / width);
    step.pool.parallel_for(runs, [&](std::uint32_t run, std::uint32_t) {
        step.kernels.rms_norm(x + run * width, weight, width, op.epsilon, out + run * width);
    });
}

void CpuGraph::compute(const Step& step, const graph::MatMul& op) {
    MatMulWork work;
    work.weight = weight_rows(op.weight);
    work.rows = rows_of(step, op.x);
    work.x = read(step, op.x);
    work.out = data(step, op.out);
    work.scale = vector_of(op.scale);
    work.bias = vector_of(op.bias);
    if (op.activations == graph::Activations::I8x32) {
        auto* pieces = reinterpret_cast<RoundedPiece*>(rounded_->data());
        if (rounded_tensor_ != op.x)
            round_rows(step.kernels, step.pool, work.x, work.rows, work.weight.columns, pieces);
        rounded_tensor_ = op.x;
        work.rounded = pieces;
    }
    matmul(step.kernels, step.pool, work);
}

CpuGraph::RopeTable& CpuGraph::rope_table(const Step& step, const graph::Rope& op) {
    RopeTable& table = *std::find_if(ropes_.begin(), ropes_.end(), [&](const RopeTable& known) {
        return have_equal_angles(graph_, *known.like, op);
    });
    if (table.is_current) return table;
    const std::size_t pairs = op.rope_dim / 2;
    if (table.frequencies.empty())
        table.frequencies = graph::rope_frequencies(
            {.rope_dim = op.rope_dim,
             .base = op.base,
             .frequency_scale = op.frequency_scale,
             .ramp = op.ramp},
            op.factors ? std::span(vector_of(*op.factors), pairs) : std::span<const float>());
    table.rotations.resize(step.rows.step * pairs);
    const auto rows = static_cast<std::uint32_t>(step.rows.step);
    step.pool.parallel_for(rows, [&](std::uint32_t row, std::uint32_t) {
        for (std::size_t i = 0; i < pairs; ++i)
            table.rotations[row * pairs + i] = graph::rope_rotation(
                table.frequencies[i], step.inputs.positions[row], op.magnitude);
    });
    table.is_current = true;
    return table;
}

void CpuGraph::compute(const Step& step, const graph::Rope& op) {
    const RopeTable& table = rope_table(step, op);
    const float* x = read(step, op.x);  // (R, head_count * head_dim)
    float* out = data(step, op.out);
    const auto rows = static_cast<std::uint32_t>(step.rows.step);
    step.pool.parallel_for(rows, [&](std::uint32_t row, std::uint32_t) {
        const graph::Rotation* rotations = table.rotations.data() + row * (op.rope_dim / 2);
        const std::size_t first = std::size_t{row} * op.head_count * op.head_dim;
        for (std::uint32_t head = 0; head < op.head_count; ++head) {
            const std::size_t at = first + std::size_t{head} * op.head_dim;
            rotate_head(op, rotations, x + at, out + at);
        }
    });
}

void CpuGraph::compute(const Step& step, const graph::StoreState& op) {
    store_state(step.pool, layers_[op.slot.group][op.slot.layer], graph_, step.inputs,
                read(step, op.keys), read(step, op.values));
}

void CpuGraph::compute(const Step& step, const graph::Attention& op) {
    attention(step.kernels, step.pool,
              {.layer = &layers_[op.slot.group][op.slot.layer],
               .query = read(step, op.query),
               .sinks = vector_of(op.sinks),
               .out = data(step, op.out),
               .room = attention_room_.data(),
               .room_stride = attention_room_stride_,
               .head_count = op.head_count,
               .window = op.window,
               .scale = op.scale,
               .softcap = op.softcap},
              graph_, step.inputs);
}

void CpuGraph::compute(const Step& step, const graph::Add& op) {
    const float* a = read(step, op.a);
    const float* b = read(step, op.b);
    float* out = data(step, op.out);
    for_chunks(step.pool, count_of(step, op.out), [&](std::size_t first, std::size_t count) {
        step.kernels.add(a + first, b + first, count, out + first);
    });
}

void CpuGraph::compute(const Step& step, const graph::Multiply& op) {
    const float* a = read(step, op.a);
    const float* b = read(step, op.b);
    float* out = data(step, op.out);
    for_chunks(step.pool, count_of(step, op.out), [&](std::size_t first, std::size_t count) {
        step.kernels.multiply(a + first, b + first, count, out + first);
    });
}

void CpuGraph::compute(const Step& step, const graph::Scale& op) {
    const float* x = read(step, op.x);
    float* out = data(step, op.out);
    for_chunks(step.pool, count_of(step, op.out), [&](std::size_t first, std::size_t count) {
        step.kernels.scale(x + first, op.factor, count, out + first);
    });
}

void CpuGraph::compute(const Step& step, const graph::GatedActivation& op) {
    const float* gate = read(step, op.gate);
    const float* up = read(step, op.up);
    float* out = data(step, op.out);
    const GateKernel kernel = gate_kernel(step.kernels, op.kind);
    for_chunks(step.pool, count_of(step, op.out), [&](std::size_t first, std::size_t count) {
        kernel(gate + first, up + first, count, out + first);
    });
}

void CpuGraph::compute(const Step& step, const graph::SelectRows& op) {
    const std::size_t columns = graph_.shape(op.x).columns;
    const float* x = read(step, op.x);
    float* out = data(step, op.out);
    for (const std::uint32_t row : step.inputs.logit_rows) {
        std::copy_n(x + row * columns, columns, out);
        out += columns;
    }
}

void CpuGraph::compute(const Step& step, const graph::SoftCap& op) {
    const float* x = read(step, op.x);
    float* out = data(step, op.out);
    for_chunks(step.pool, count_of(step, op.out), [&](std::size_t first, std::size_t count) {
        step.kernels.soft_cap(x + first, op.cap, count, out + first);
    });
}

void CpuGraph::compute(const Step& step, const graph::LayerNorm& op) {
    const std::size_t width = graph_.shape(op.x).columns;
    const float* x = read(step, op.x);
    const NormVectors vectors{vector_of(op.weight), vector_of(op.bias)};
    float* out = data(step, op.out);
    const auto rows = static_cast<std::uint32_t>(rows_of(step, op.x));
    step.pool.parallel_for(rows, [&](std::uint32_t row, std::uint32_t) {
        step.kernels.layer_norm(x + row * width, vectors, width, op.epsilon, out + row * width);
    });
}

void CpuGraph::compute(const Step& step, const graph::Activate& op) {
    const float* x = read(step, op.x);
    float* out = data(step, op.out);
    for_chunks(step.pool, count_of(step, op.out), [&](std::size_t first, std::size_t count) {
        step.kernels.gelu_erf(x + first, count, out + first);
    });
}

void CpuGraph::compute(const Step& step, const graph::RoutedExperts& op) {
    rounded_tensor_ = {};  // its pieces are overwritten
    routed_experts(step.kernels, step.pool,
                   {.op = &op,
                    .x = read(step, op.x),
                    .logits = read(step, op.logits),
                    .selection_bias = vector_of(op.selection_bias),
                    .gate = weight_rows(op.gate),
                    .up = weight_rows(op.up),
                    .down = weight_rows(op.down),
                    .gate_bias = weight_rows(op.gate_bias),
                    .up_bias = weight_rows(op.up_bias),
                    .down_bias = weight_rows(op.down_bias),
                    .room = data(step, op.room),
                    .pieces = reinterpret_cast<RoundedPiece*>(rounded_->data()),
                    .out = data(step, op.out),
                    .rows = step.rows.step},
                   experts_room_);
}

void CpuGraph::compute(const Step& step, const graph::HeadMatMul& op) {
    const std::size_t rows = step.rows.step;
    const std::size_t columns = graph_.shape(op.weight).columns;
    const float* x = read(step, op.x);
    float* out = data(step, op.out);
    float* head_x = data(step, op.room);  // (R, columns)
    MatMulWork work;
    work.weight = weight_rows(op.weight);
    work.weight.count /= op.head_count;
    float* head_out = head_x + rows * columns;  // (R, rows of a head's matrix)
    work.x = head_x;
    work.rows = rows;
    work.out = head_out;
    const std::size_t count = work.weight.count;
    rounded_tensor_ = {};  // its pieces are overwritten
    for (std::size_t head = 0; head < op.head_count; ++head) {
        for (std::size_t r = 0; r < rows; ++r)
            std::copy_n(x + (r * op.head_count + head) * columns, columns, head_x + r * columns);
        if (op.activations == graph::Activations::I8x32) {
            auto* pieces = reinterpret_cast<RoundedPiece*>(rounded_->data());
            round_rows(step.kernels, step.pool, head_x, rows, columns, pieces);
            work.rounded = pieces;
        }
        matmul(step.kernels, step.pool, work);
        for (std::size_t r = 0; r < rows; ++r)
            std::copy_n(head_out + r * count, count, out + (r * op.head_count + head) * count);
        work.weight.first_row += count;
    }
}

void CpuGraph::compute(const Step& step, const graph::SliceHeads& op) {
    const std::size_t heads = step.rows.step * op.head_count;
    const std::size_t head_dim = graph_.shape(op.x).columns / op.head_count;
    const std::size_t count = graph_.shape(op.out).columns / op.head_count;
    const float* x = read(step, op.x) + op.first;
    float* out = data(step, op.out);
    for (std::size_t head = 0; head < heads; ++head)
        std::copy_n(x + head * head_dim, count, out + head * count);
}

void CpuGraph::compute(const Step& step, const graph::JoinHeads& op) {
    const std::size_t heads = step.rows.step * op.head_count;
    const std::size_t n = graph_.shape(op.a).columns / op.head_count;
    const std::size_t m = graph_.shape(op.b).columns / op.head_count;
    const float* a = read(step, op.a);
    const float* b = read(step, op.b);
    float* out = data(step, op.out);
    for (std::size_t head = 0; head < heads; ++head) {
        std::copy_n(a + head * n, n, out + head * (n + m));
        std::copy_n(b + head * m, m, out + head * (n + m) + n);
    }
}

}  // namespace artel::cpu
