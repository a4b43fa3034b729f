// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/reference_ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/check.hpp"
#include "graph/activation_rounding.hpp"
#include "graph/rope_angles.hpp"
#include "graph/routing.hpp"
#include "quant/formats.hpp"
#include "quant/half.hpp"

namespace artel::reference {

using graph::Tensor;

std::vector<float> StepValues::weight_row(Tensor weight, std::uint64_t r) const {
    const graph::Weight& whole = graph.weight(weight);
    const graph::TensorRecord& record = graph.record(weight);
    const std::uint64_t row_bytes = whole.bytes / whole.rows;
    std::vector<float> decoded(whole.columns);
    const Error error = quant::decode_row(
        whole.format, weights[record.weight].subspan((record.first_row + r) * row_bytes, row_bytes),
        decoded);
    ARTEL_CHECK(error.ok(), "prepare() has checked the sizes of weights");
    return decoded;
}

namespace {

/// x as an op with Activations::I8x32 sees it.
std::vector<float> rounded(std::span<const float> x) {
    std::vector<std::int8_t> quants(x.size());
    std::vector<float> scales(x.size() / graph::kActivationBlock);
    graph::round_activations(x.data(), x.size(), quants.data(), scales.data());
    std::vector<float> result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
        result[i] = static_cast<float>(quants[i]) * scales[i / graph::kActivationBlock];
    return result;
}

double dot(std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

/// out[i] = function(a[i], b[i]) over whole tensors.
template <class Function>
void combine(StepValues& step, Tensor a, Tensor b, Tensor out, Function function) {
    const std::span<const float> left = step.read_only[a.index];
    const std::span<const float> right = step.read_only[b.index];
    const std::span<float> target = step.values[out.index];
    for (std::size_t i = 0; i < target.size(); ++i) target[i] = function(left[i], right[i]);
}

/// The pages of one layer of one sequence, as numbers.
struct LayerPages {
    const graph::StateGroup& group;
    const graph::LayerState& layer;
    graph::LayerPlace place;
    std::uint64_t page_bytes;
    std::span<std::byte> memory;
    const graph::PageTable& table;

    LayerPages(const StepValues& step, graph::StateSlot slot, std::uint32_t sequence)
        : group(step.graph.groups[slot.group]),
          layer(step.graph.layer_state(slot)),
          memory(step.state[slot.group]),
          table(step.inputs.table(step.graph, sequence, slot.group)) {
        const graph::PageLayout layout = graph::page_layout(group);
        place = layout.layers[slot.layer];
        page_bytes = layout.page_bytes;
    }
    std::byte* element(std::uint32_t position, std::uint64_t part, std::uint64_t index) const {
        const std::uint32_t page = table.pages[position / graph::kPageTokens - table.first_page];
        return memory.data() + page * page_bytes + part + index * state_type_bytes(group.type);
    }
    std::byte* key(std::uint32_t position, std::uint64_t head, std::uint64_t column) const {
        return element(position, place.keys_offset,
                       key_index(layer, head, column, position % graph::kPageTokens));
    }
    std::byte* value(std::uint32_t position, std::uint64_t head, std::uint64_t column) const {
        if (layer.values_in_keys) return key(position, head, column);
        return element(position, place.values_offset,
                       value_index(layer, head, column, position % graph::kPageTokens));
    }
    void write(std::byte* target, float x) const {
        if (group.type == graph::StateType::F32) {
            std::memcpy(target, &x, sizeof(x));
            return;
        }
        const quant::F16Bits half = quant::f32_to_f16(x);
        std::memcpy(target, &half, sizeof(half));
    }
    double read(const std::byte* source) const {
        if (group.type == graph::StateType::F32) {
            float x = 0;
            std::memcpy(&x, source, sizeof(x));
            return static_cast<double>(x);
        }
        quant::F16Bits half = 0;
        std::memcpy(&half, source, sizeof(half));
        return static_cast<double>(quant::f16_to_f32(half));
    }
};

/// Attention of one row and one query head. out: (value_dim)
void attend(const LayerPages& pages, const graph::Attention& op, std::uint64_t kv_head,
            std::uint32_t position, std::span<const float> query, const float* sink,
            std::span<float> out) {
    const std::uint32_t first = graph::first_visible(position, op.window);
    std::vector<double> weights;  // (positions seen)
    for (std::uint32_t p = first; p <= position; ++p) {
        double score = 0;
        for (std::size_t k = 0; k < query.size(); ++k)
            score += static_cast<double>(query[k]) * pages.read(pages.key(p, kv_head, k));
        score *= static_cast<double>(op.scale);
        if (op.softcap > 0) {
            const auto cap = static_cast<double>(op.softcap);
            score = cap * std::tanh(score / cap);
        }
        weights.push_back(score);
    }
    double top = *std::max_element(weights.begin(), weights.end());
    if (sink != nullptr) top = std::max(top, static_cast<double>(*sink));
    double sum = sink == nullptr ? 0 : std::exp(static_cast<double>(*sink) - top);
    for (double& weight : weights) {
        weight = std::exp(weight - top);
        sum += weight;
    }
    for (std::size_t c = 0; c < out.size(); ++c) {
        double value = 0;
        for (std::uint32_t p = first; p <= position; ++p)
            value += weights[p - first] / sum * pages.read(pages.value(p, kv_head, c));
        out[c] = static_cast<float>(value);
    }
}

double gate_value(graph::GateKind kind, double x) {
    if (kind == graph::GateKind::Silu) return x / (1 + std::exp(-x));
    if (kind == graph::GateKind::ClampedSwish) {
        const double clamped = std::min(x, 7.0);
        return clamped / (1 + std::exp(-1.702 * clamped));
    }
    const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + std::tanh(u));
}

float gated(graph::GateKind kind, float gate, float up) {
    auto factor = static_cast<double>(up);
    if (kind == graph::GateKind::ClampedSwish) factor = std::clamp(factor, -7.0, 7.0) + 1;
    return static_cast<float>(gate_value(kind, static_cast<double>(gate)) * factor);
}

/// One expert's part of a weight of all experts, times x, plus its bias. -> (rows of the part)
std::vector<float> expert_product(const StepValues& step, Tensor weight,
                                  const std::optional<Tensor>& bias, std::uint64_t expert,
                                  std::uint64_t experts, std::span<const float> x) {
    const std::uint64_t rows = step.graph.shape(weight).rows / experts;
    const bool is_exact =
        quant::format_traits(step.graph.weight(weight).format).block_elements == 1;
    const std::vector<float> seen = is_exact ? std::vector<float>(x.begin(), x.end()) : rounded(x);
    std::vector<float> out(rows);
    for (std::uint64_t r = 0; r < rows; ++r)
        out[r] = static_cast<float>(dot(step.weight_row(weight, expert * rows + r), seen));
    if (!bias) return out;
    const std::vector<float> added = step.weight_row(*bias, expert);
    for (std::uint64_t r = 0; r < rows; ++r) out[r] += added[r];
    return out;
}

}  // namespace

void compute(const graph::EmbedRows& op, StepValues& step) {
    for (std::uint64_t r = 0; r < step.rows(op.out); ++r) {
        const std::vector<float> embedding = step.weight_row(op.weight, step.inputs.tokens[r]);
        const std::span<float> out = step.row(op.out, r);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = embedding[i] * op.scale;
    }
}

void compute(const graph::RmsNorm& op, StepValues& step) {
    const std::vector<float> weight = step.weight_row(op.weight, 0);  // (width)
    const std::span<const float> x = step.read_only[op.x.index];
    const std::span<float> out = step.values[op.out.index];
    for (std::size_t begin = 0; begin < x.size(); begin += weight.size()) {
        const std::span<const float> part = x.subspan(begin, weight.size());
        const double mean = dot(part, part) / static_cast<double>(weight.size());
        const double root = std::sqrt(mean + static_cast<double>(op.epsilon));
        for (std::size_t i = 0; i < weight.size(); ++i)
            out[begin + i] = static_cast<float>(static_cast<double>(part[i]) / root *
                                                static_cast<double>(weight[i]));
    }
}

void compute(const graph::MatMul& op, StepValues& step) {
    std::vector<std::vector<float>> x;  // (rows, columns)
    for (std::uint64_t r = 0; r < step.rows(op.x); ++r) {
        const std::span<const float> row = std::as_const(step).row(op.x, r);
        x.push_back(op.activations == graph::Activations::I8x32
                        ? rounded(row)
                        : std::vector<float>(row.begin(), row.end()));
    }
    const double scale = op.scale ? static_cast<double>(step.weight_row(*op.scale, 0)[0]) : 1.0;
    const std::vector<float> bias =
        op.bias ? step.weight_row(*op.bias, 0) : std::vector<float>(step.columns(op.out), 0.0F);
    for (std::uint64_t column = 0; column < step.columns(op.out); ++column) {
        const std::vector<float> weight = step.weight_row(op.weight, column);
        for (std::uint64_t r = 0; r < x.size(); ++r)
            step.row(op.out, r)[column] =
                static_cast<float>(dot(weight, x[r]) * scale + static_cast<double>(bias[column]));
    }
}

void compute(const graph::Rope& op, StepValues& step) {
    const std::vector<float> factors =
        op.factors ? step.weight_row(*op.factors, 0) : std::vector<float>();
    const std::vector<double> frequencies =
        graph::rope_frequencies({.rope_dim = op.rope_dim,
                                 .base = op.base,
                                 .frequency_scale = op.frequency_scale,
                                 .ramp = op.ramp},
                                factors);
    const bool is_interleaved = op.style == graph::RopeStyle::Interleaved;
    for (std::uint64_t r = 0; r < step.rows(op.x); ++r) {
        const std::span<const float> x = std::as_const(step).row(op.x, r);
        const std::span<float> out = step.row(op.out, r);
        std::copy(x.begin(), x.end(), out.begin());
        for (std::size_t head = 0; head < op.head_count; ++head)
            for (std::size_t i = 0; i < op.rope_dim / 2; ++i) {
                const std::size_t a = head * op.head_dim + (is_interleaved ? 2 * i : i);
                const std::size_t b = is_interleaved ? a + 1 : a + op.rope_dim / 2;
                const graph::Rotation turn =
                    graph::rope_rotation(frequencies[i], step.inputs.positions[r], op.magnitude);
                const double c = static_cast<double>(turn.cosine);
                const double s = static_cast<double>(turn.sine);
                const double left = static_cast<double>(x[a]);
                const double right = static_cast<double>(x[b]);
                out[a] = static_cast<float>(left * c - right * s);
                out[b] = static_cast<float>(left * s + right * c);
            }
    }
}

void compute(const graph::StoreState& op, StepValues& step) {
    for (std::uint64_t r = 0; r < step.rows(op.keys); ++r) {
        const LayerPages pages(step, op.slot, step.inputs.sequences[r]);
        const graph::LayerState& layer = pages.layer;
        const std::uint32_t position = step.inputs.positions[r];
        const std::span<const float> keys = std::as_const(step).row(op.keys, r);
        const std::span<const float> values = std::as_const(step).row(op.values, r);
        for (std::size_t head = 0; head < layer.kv_head_count; ++head) {
            for (std::size_t k = 0; k < layer.key_dim; ++k)
                pages.write(pages.key(position, head, k), keys[head * layer.key_dim + k]);
            for (std::size_t c = 0; c < layer.value_dim && !layer.values_in_keys; ++c)
                pages.write(pages.value(position, head, c), values[head * layer.value_dim + c]);
        }
    }
}

void compute(const graph::Attention& op, StepValues& step) {
    const std::vector<float> sinks =
        op.sinks ? step.weight_row(*op.sinks, 0) : std::vector<float>();  // (heads)
    for (std::uint64_t r = 0; r < step.rows(op.query); ++r) {
        const LayerPages pages(step, op.slot, step.inputs.sequences[r]);
        const graph::LayerState& layer = pages.layer;
        const std::uint64_t heads_a_kv_head = op.head_count / layer.kv_head_count;
        for (std::uint64_t head = 0; head < op.head_count; ++head)
            attend(
                pages, op, head / heads_a_kv_head, step.inputs.positions[r],
                std::as_const(step).row(op.query, r).subspan(head * layer.key_dim, layer.key_dim),
                sinks.empty() ? nullptr : &sinks[head],
                step.row(op.out, r).subspan(head * layer.value_dim, layer.value_dim));
    }
}

void compute(const graph::Add& op, StepValues& step) {
    combine(step, op.a, op.b, op.out, [](float a, float b) { return a + b; });
}

void compute(const graph::Multiply& op, StepValues& step) {
    combine(step, op.a, op.b, op.out, [](float a, float b) { return a * b; });
}

void compute(const graph::Scale& op, StepValues& step) {
    combine(step, op.x, op.x, op.out, [&](float x, float) { return x * op.factor; });
}

void compute(const graph::GatedActivation& op, StepValues& step) {
    combine(step, op.gate, op.up, op.out,
            [&](float gate, float up) { return gated(op.kind, gate, up); });
}

void compute(const graph::SelectRows& op, StepValues& step) {
    for (std::uint64_t i = 0; i < step.rows(op.out); ++i) {
        const std::span<const float> x = std::as_const(step).row(op.x, step.inputs.logit_rows[i]);
        std::copy(x.begin(), x.end(), step.row(op.out, i).begin());
    }
}

void compute(const graph::SoftCap& op, StepValues& step) {
    const auto cap = static_cast<double>(op.cap);
    combine(step, op.x, op.x, op.out, [&](float x, float) {
        return static_cast<float>(cap * std::tanh(static_cast<double>(x) / cap));
    });
}

void compute(const graph::LayerNorm& op, StepValues& step) {
    const std::vector<float> weight = step.weight_row(op.weight, 0);  // (width)
    const std::vector<float> bias =
        op.bias ? step.weight_row(*op.bias, 0) : std::vector<float>(weight.size(), 0.0F);
    const auto width = static_cast<double>(weight.size());
    for (std::uint64_t r = 0; r < step.rows(op.x); ++r) {
        const std::span<const float> x = std::as_const(step).row(op.x, r);
        double mean = 0;
        for (const float value : x) mean += static_cast<double>(value) / width;
        double variance = 0;
        for (const float value : x) {
            const double d = static_cast<double>(value) - mean;
            variance += d * d / width;
        }
        const double root = std::sqrt(variance + static_cast<double>(op.epsilon));
        for (std::size_t i = 0; i < x.size(); ++i)
            step.row(op.out, r)[i] = static_cast<float>((static_cast<double>(x[i]) - mean) / root *
                                                            static_cast<double>(weight[i]) +
                                                        static_cast<double>(bias[i]));
    }
}

void compute(const graph::Activate& op, StepValues& step) {
    combine(step, op.x, op.x, op.out, [](float x, float) {
        const auto wide = static_cast<double>(x);
        return static_cast<float>(0.5 * wide * std::erfc(-wide / std::numbers::sqrt2));
    });
}

void compute(const graph::RoutedExperts& op, StepValues& step) {
    const std::uint64_t experts = op.routing.expert_count;
    const std::vector<float> bias =
        op.selection_bias ? step.weight_row(*op.selection_bias, 0) : std::vector<float>();
    std::vector<float> room(2 * experts);
    std::vector<graph::ExpertShare> shares(op.routing.used_count);
    for (std::uint64_t r = 0; r < step.rows(op.x); ++r) {
        const std::span<const float> x = std::as_const(step).row(op.x, r);
        graph::choose_experts(op.routing, std::as_const(step).row(op.logits, r).data(),
                              bias.empty() ? nullptr : bias.data(), room.data(), shares.data());
        std::vector<double> sums(x.size());
        for (const auto& [expert, weight] : shares) {
            std::vector<float> hidden =
                expert_product(step, op.gate, op.gate_bias, expert, experts, x);
            const auto up = expert_product(step, op.up, op.up_bias, expert, experts, x);
            for (std::size_t i = 0; i < up.size(); ++i)
                hidden[i] = gated(op.kind, hidden[i], up[i]);
            const auto y = expert_product(step, op.down, op.down_bias, expert, experts, hidden);
            for (std::size_t i = 0; i < sums.size(); ++i)
                sums[i] += static_cast<double>(y[i]) * static_cast<double>(weight);
        }
        for (std::size_t i = 0; i < sums.size(); ++i)
            step.row(op.out, r)[i] = static_cast<float>(sums[i]);
    }
}

void compute(const graph::HeadMatMul& op, StepValues& step) {
    const std::uint64_t columns = step.columns(op.x) / op.head_count;
    const std::uint64_t rows = step.columns(op.out) / op.head_count;
    for (std::uint64_t r = 0; r < step.rows(op.x); ++r)
        for (std::uint64_t head = 0; head < op.head_count; ++head)
            std::ranges::copy(
                expert_product(step, op.weight, std::nullopt, head, op.head_count,
                               std::as_const(step).row(op.x, r).subspan(head * columns, columns)),
                step.row(op.out, r).subspan(head * rows, rows).begin());
}

void compute(const graph::SliceHeads& op, StepValues& step) {
    const std::uint64_t head_dim = step.columns(op.x) / op.head_count;
    const std::uint64_t count = step.columns(op.out) / op.head_count;
    for (std::uint64_t r = 0; r < step.rows(op.x); ++r)
        for (std::uint64_t head = 0; head < op.head_count; ++head)
            std::ranges::copy(
                std::as_const(step).row(op.x, r).subspan(head * head_dim + op.first, count),
                step.row(op.out, r).subspan(head * count, count).begin());
}

void compute(const graph::JoinHeads& op, StepValues& step) {
    const std::uint64_t n = step.columns(op.a) / op.head_count;
    const std::uint64_t m = step.columns(op.b) / op.head_count;
    for (std::uint64_t r = 0; r < step.rows(op.out); ++r)
        for (std::uint64_t head = 0; head < op.head_count; ++head) {
            const std::span<float> out = step.row(op.out, r).subspan(head * (n + m), n + m);
            std::ranges::copy(std::as_const(step).row(op.a, r).subspan(head * n, n), out.begin());
            std::ranges::copy(std::as_const(step).row(op.b, r).subspan(head * m, m),
                              out.subspan(n).begin());
        }
}

}  // namespace artel::reference
