// SPDX-License-Identifier: Apache-2.0
#include "conformance/exact_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "graph/activation_rounding.hpp"
#include "graph/arithmetic.hpp"
#include "graph/state.hpp"

namespace artel::conformance {

namespace {

/// What a block of 32 columns adds: acc = fma(dot, scale * d, acc), low = fma(sum, offset * d,
/// low).
struct BlockTerms {
    std::int32_t dot = 0;
    float scale = 0;
    std::int32_t sum = 0;
    float offset = 0;
};

std::int32_t product(const std::int8_t* w, const std::int8_t* q, int count) {
    std::int32_t sum = 0;
    for (int i = 0; i < count; ++i) sum += w[i] * q[i];
    return sum;
}

std::int32_t total(const std::int8_t* q) {
    std::int32_t sum = 0;
    for (int i = 0; i < 32; ++i) sum += q[i];
    return sum;
}

std::int32_t total_of_16(const std::int8_t* q) {
    std::int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += q[i];
    return sum;
}

/// The same for formats whose values are block_scale * part_scale * whole number.
template <quant::PartsFormat F>
BlockTerms parts_terms(const typename F::Block& block, const std::int8_t* w, int b,
                       const std::int8_t* q) {
    BlockTerms terms;
    terms.scale = F::block_scale(block);
    for (int half = 0; half < 2; ++half) {
        const int column = 32 * b + 16 * half;
        const int part = column / F::kPartElements;
        std::int8_t scales[16] = {1};  // of the one part where there are no more
        std::int8_t minima[16] = {};
        if constexpr (quant::kHasPartScales<F>) F::unpack_part_scales(block, scales);
        terms.dot += scales[part] * product(w + column, q + 16 * half, 16);
        if constexpr (quant::kHasPartMinima<F>) {
            F::unpack_part_minima(block, minima);
            terms.sum += minima[part] * total_of_16(q + 16 * half);
            terms.offset = -F::block_minimum(block);
        }
    }
    return terms;
}

/// Block `b` of 32 within a file block whose whole numbers are `w`.
template <class F>
BlockTerms block_terms(const typename F::Block& block, const std::int8_t* w, int b,
                       const std::int8_t* q) requires(!quant::PartsFormat<F>) {
    BlockTerms terms;
    terms.scale = quant::f16_to_f32(block.scale);
    const std::int8_t* part = w + 32 * b;
    if constexpr (requires { F::unpack_scales(block, nullptr, nullptr); }) {  // Q4_K, Q5_K
        std::uint8_t scales[8];
        std::uint8_t minima[8];
        F::unpack_scales(block, scales, minima);
        terms.dot = scales[b] * product(part, q, 32);
        terms.sum = minima[b] * total(q);
        terms.offset = -quant::f16_to_f32(block.minimum);
    } else if constexpr (requires { block.scales; }) {  // Q6_K
        terms.dot = block.scales[2 * b] * product(part, q, 16) +
                    block.scales[2 * b + 1] * product(part + 16, q + 16, 16);
    } else {
        terms.dot = product(part, q, 32);
        if constexpr (requires { block.minimum; }) {  // Q4_1, Q5_1
            terms.sum = total(q);
            terms.offset = quant::f16_to_f32(block.minimum);
        }
    }
    return terms;
}

template <class F>
constexpr bool kHasOffset = requires(typename F::Block block) {
    block.minimum;
};

/// NVFP4: each 16 columns have a scale of their own, so that two terms are added for a block of 32.
float nvfp4_dot(std::span<const std::byte> weight_row, std::span<const float> x) {
    using F = quant::NVFP4;
    std::vector<std::int8_t> quants(x.size());
    std::vector<float> d(x.size() / 32);
    graph::round_activations(x.data(), x.size(), quants.data(), d.data());
    float acc = 0;
    for (std::size_t at = 0; at < x.size(); at += 16) {
        const auto block = quant::load_block<F>(weight_row.data(), at / 64);
        std::int8_t w[64];
        F::unpack(block, w);
        const std::int32_t dot = product(w + at % 64, quants.data() + at, 16);
        const float scale = F::part_scale(block, static_cast<int>(at % 64 / 16));
        acc = std::fma(static_cast<float>(dot), scale * d[at / 32], acc);
    }
    return acc;
}

template <class F>
float integer_dot(std::span<const std::byte> weight_row, std::span<const float> x) {
    std::vector<std::int8_t> quants(x.size());
    std::vector<float> d(x.size() / 32);
    graph::round_activations(x.data(), x.size(), quants.data(), d.data());
    float acc = 0;
    float low = 0;
    for (std::size_t at = 0; at < x.size(); at += F::kBlockElements) {
        const auto block = quant::load_block<F>(weight_row.data(), at / F::kBlockElements);
        std::int8_t w[F::kBlockElements];
        F::unpack(block, w);
        for (int b = 0; b < F::kBlockElements / 32; ++b) {
            const std::size_t column = at + 32 * static_cast<std::size_t>(b);
            BlockTerms terms;
            if constexpr (quant::PartsFormat<F>)
                terms = parts_terms<F>(block, w, b, quants.data() + column);
            else
                terms = block_terms<F>(block, w, b, quants.data() + column);
            acc = std::fma(static_cast<float>(terms.dot), terms.scale * d[column / 32], acc);
            low = std::fma(static_cast<float>(terms.sum), terms.offset * d[column / 32], low);
        }
    }
    return kHasOffset<F> ? acc + low : acc;
}

template <class F>
float float_dot(std::span<const std::byte> weight_row, std::span<const float> x) {
    float acc = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
        float w = 0;
        F::decode(quant::load_block<F>(weight_row.data(), k), &w);
        acc = std::fma(x[k], w, acc);
    }
    return acc;
}

float tree(std::array<float, 16> p) {
    for (std::size_t half = 8; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) p[i] = p[i] + p[i + half];
    return p[0];
}

struct Softmax {
    float top = 0;
    float sum = 0;
    std::vector<float> vector;
};

/// Positions [first, end) of one block of 64.
Softmax attend_block(const graph::Attention& op, const ExactHead& head,
                     std::span<const float> query, std::uint32_t first, std::uint32_t end) {
    std::vector<float> scores;
    for (std::uint32_t p = first; p < end; ++p) {
        float dot = 0;
        for (std::size_t k = 0; k < query.size(); ++k)
            dot = std::fma(query[k], head.keys[p][k], dot);
        const float score = dot * op.scale;
        scores.push_back(op.softcap > 0 ? op.softcap * graph::exact_tanh(score / op.softcap)
                                        : score);
    }
    Softmax block{*std::max_element(scores.begin(), scores.end()), 0,
                  std::vector<float>(head.values[first].size(), 0.0F)};
    std::array<float, 16> partial{};
    for (std::uint32_t p = first; p < end; ++p) {
        const float weight = graph::exact_exp(scores[p - first] - block.top);
        partial[p % 16] += weight;
        for (std::size_t c = 0; c < block.vector.size(); ++c)
            block.vector[c] = std::fma(weight, head.values[p][c], block.vector[c]);
    }
    block.sum = tree(partial);
    return block;
}

void merge(Softmax& running, const Softmax& block) {
    const float top = std::max(running.top, block.top);
    const float a = graph::exact_exp(running.top - top);
    const float b = graph::exact_exp(block.top - top);
    running.sum = std::fma(block.sum, b, running.sum * a);
    for (std::size_t c = 0; c < running.vector.size(); ++c)
        running.vector[c] = std::fma(block.vector[c], b, running.vector[c] * a);
    running.top = top;
}

}  // namespace

float exact_dot(quant::FormatId format, std::span<const std::byte> weight_row,
                std::span<const float> x) {
    return quant::with_format(format, [&]<quant::Format F>() {
        if constexpr (F::kBlockElements == 1)
            return float_dot<F>(weight_row, x);
        else if constexpr (std::is_same_v<F, quant::NVFP4>)
            return nvfp4_dot(weight_row, x);
        else
            return integer_dot<F>(weight_row, x);
    });
}

std::vector<float> exact_rms_norm(std::span<const float> x, std::span<const float> weight,
                                  float epsilon) {
    std::array<float, 16> partial{};
    for (std::size_t i = 0; i < x.size(); ++i)
        partial[i % 16] = std::fma(x[i], x[i], partial[i % 16]);
    const float r = 1.0F / std::sqrt(tree(partial) / static_cast<float>(x.size()) + epsilon);
    std::vector<float> out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = (x[i] * r) * weight[i];
    return out;
}

std::vector<float> exact_attention(const graph::Attention& op, const ExactHead& head,
                                   std::span<const float> query, std::uint32_t position) {
    std::uint32_t first = graph::first_visible(position, op.window);
    Softmax running;
    while (first <= position) {
        const std::uint32_t end = std::min((first / 64 + 1) * 64, position + 1);
        const Softmax block = attend_block(op, head, query, first, end);
        if (running.vector.empty())
            running = block;
        else
            merge(running, block);
        first = end;
    }
    const float inverse = 1.0F / running.sum;
    for (float& value : running.vector) value = value * inverse;
    return running.vector;
}

}  // namespace artel::conformance
