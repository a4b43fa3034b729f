// SPDX-License-Identifier: Apache-2.0
// THE rule by which a row chooses its experts and their weights. Every backend routes by it, bit
// for bit: a choice is discrete, and another one changes the answer. A row's choice depends on
// nothing but the row. Compiled once, for the baseline instruction set. Pure function.
#pragma once

#include <cstdint>

namespace artel::graph {

enum class ExpertScore : std::uint8_t {
    Softmax,       // over all experts
    Sigmoid,       // of each by itself
    ChosenSoftmax  // chosen by the plain logits; softmax over those that were chosen
};

/// With `groups` > 1, experts lie in that many runs of equal length, and only those of the
/// `groups_used` best runs may be chosen (DeepSeek-V2 and V3, arXiv 2405.04434, 2412.19437). A run
/// is as good as its best expert, or as its two best together where there is a selection bias.
struct Routing {
    ExpertScore score = ExpertScore::Softmax;
    std::uint32_t expert_count = 0;
    std::uint32_t used_count = 0;  // 1 .. expert_count
    std::uint32_t groups = 1;      // divides expert_count
    std::uint32_t groups_used = 1;
    bool normalises = false;  // weights are divided by their sum
    float scale = 1;          // of all weights
};

/// An expert that a row uses, and how much of it.
struct ExpertShare {
    std::uint32_t expert = 0;
    float weight = 0;
};

/// `logits` (expert_count); `bias` (expert_count) or null: it counts for the choice alone, not for
/// the weight. chosen (used_count): by ascending expert number. `room` (2 * expert_count). Equal
/// values: the lower number wins. NaN logits choose some experts and make NaN weights. See
/// arithmetic.hpp for the order of operations.
void choose_experts(const Routing& routing, const float* logits, const float* bias, float* room,
                    ExpertShare* chosen);

}  // namespace artel::graph
