// SPDX-License-Identifier: Apache-2.0
#include "graph/routing.hpp"

#include <algorithm>
#include <limits>

#include "graph/arithmetic.hpp"

namespace artel::graph {

namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

/// out = softmax(x).
void softmax(const float* x, std::uint32_t count, float* out) {
    float top = x[0];
    for (std::uint32_t i = 1; i < count; ++i) top = x[i] > top ? x[i] : top;
    float partial[16] = {};
    for (std::uint32_t i = 0; i < count; ++i) {
        out[i] = exact_exp(x[i] - top);
        partial[i % 16] += out[i];
    }
    const float sum = tree_sum(partial);
    for (std::uint32_t i = 0; i < count; ++i) out[i] = out[i] / sum;
}

/// The place of the largest value that is above kExcluded, the first of equals; 0 if none is.
std::uint32_t best(const float* values, std::uint32_t count) {
    std::uint32_t at = 0;
    for (std::uint32_t i = 1; i < count; ++i)
        if (values[i] > values[at]) at = i;
    return at;
}

/// The largest value, or the sum of the two largest.
float group_value(const float* values, std::uint32_t count, bool takes_two) {
    const std::uint32_t first = best(values, count);
    if (!takes_two || count == 1) return values[first];
    float second = kExcluded;
    for (std::uint32_t i = 0; i < count; ++i)
        if (i != first && values[i] > second) second = values[i];
    return values[first] + second;
}

/// Leaves the values of the best groups alone; those of others become kExcluded.
void exclude_groups(const Routing& routing, bool has_bias, float* values) {
    const std::uint32_t size = routing.expert_count / routing.groups;
    for (std::uint32_t excluded = routing.groups - routing.groups_used; excluded > 0; --excluded) {
        // The worst group that is still in, the last of equals.
        std::uint32_t worst = routing.groups;
        float worst_value = 0;
        for (std::uint32_t g = 0; g < routing.groups; ++g) {
            const float value = group_value(values + g * size, size, has_bias);
            if (value == kExcluded) continue;
            if (worst == routing.groups || value <= worst_value) {
                worst = g;
                worst_value = value;
            }
        }
        if (worst == routing.groups) return;
        std::fill_n(values + worst * size, size, kExcluded);
    }
}

}  // namespace

void choose_experts(const Routing& routing, const float* logits, const float* bias, float* room,
                    ExpertShare* chosen) {
    const std::uint32_t count = routing.expert_count;
    float* scores = room;           // (experts)
    float* choices = room + count;  // (experts)
    if (routing.score == ExpertScore::Softmax)
        softmax(logits, count, scores);
    else
        for (std::uint32_t i = 0; i < count; ++i)
            scores[i] = routing.score == ExpertScore::Sigmoid
                            ? 1.0F / (1.0F + exact_exp(-logits[i]))
                            : logits[i];
    for (std::uint32_t i = 0; i < count; ++i)
        choices[i] = bias == nullptr ? scores[i] : scores[i] + bias[i];
    if (routing.groups > 1) exclude_groups(routing, bias != nullptr, choices);

    constexpr std::uint32_t kNone = 0xFFFF'FFFF;
    for (std::uint32_t k = 0; k < routing.used_count; ++k) {
        std::uint32_t at = kNone;
        for (std::uint32_t i = 0; i < count; ++i) {
            const bool is_taken = std::any_of(chosen, chosen + k,
                                              [i](const ExpertShare& c) { return c.expert == i; });
            if (!is_taken && (at == kNone || choices[i] > choices[at])) at = i;
        }
        chosen[k] = {.expert = at, .weight = scores[at]};
    }
    std::sort(chosen, chosen + routing.used_count,
              [](const ExpertShare& a, const ExpertShare& b) { return a.expert < b.expert; });
    if (routing.score == ExpertScore::ChosenSoftmax) {
        for (std::uint32_t k = 0; k < routing.used_count; ++k) scores[k] = chosen[k].weight;
        softmax(scores, routing.used_count, choices);
        for (std::uint32_t k = 0; k < routing.used_count; ++k) chosen[k].weight = choices[k];
    }
    float sum = 0;
    for (std::uint32_t k = 0; k < routing.used_count; ++k) sum += chosen[k].weight;
    for (std::uint32_t k = 0; k < routing.used_count; ++k) {
        if (routing.normalises) chosen[k].weight = chosen[k].weight / sum;
        chosen[k].weight = chosen[k].weight * routing.scale;
    }
}

}  // namespace artel::graph
