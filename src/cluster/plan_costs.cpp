// SPDX-License-Identifier: Apache-2.0
#include "cluster/plan_costs.hpp"

#include <algorithm>

#include "base/byte_count.hpp"

namespace artel::cluster {

namespace {

// Where a probe gave nothing: a slow laptop, so that such a worker gets few layers.
constexpr std::uint64_t kBandwidthUnknown = 4'000'000'000;
constexpr std::uint64_t kFlopsUnknown = 4'000'000'000;

std::uint64_t state_of(const LayerProfile& layer, const ModelProfile& model,
                       const std::vector<std::uint32_t>& page_counts) {
    std::uint64_t bytes = 0;
    for (const LayerState& state : layer.states) {
        const bool is_slot = model.groups[state.group].kind == protocol::StateKind::Slot;
        const std::uint64_t page =
            multiply_saturated(state.bytes, is_slot ? 1 : protocol::kPageTokens);
        bytes = add_saturated(bytes, multiply_saturated(page, page_counts[state.group]));
    }
    return bytes;
}

}  // namespace

std::uint64_t add_saturated(std::uint64_t a, std::uint64_t b) {
    return checked_add(a, b).value_or(kNever);
}

std::uint64_t multiply_saturated(std::uint64_t a, std::uint64_t b) {
    return checked_multiply(a, b).value_or(kNever);
}

std::uint64_t duration_ns(std::uint64_t amount, std::uint64_t per_second) {
    __extension__ using Wide = unsigned __int128;
    const Wide ns = (static_cast<Wide>(amount) * 1'000'000'000U + per_second - 1) / per_second;
    return ns > kNever ? kNever : static_cast<std::uint64_t>(ns);
}

PlanCosts::PlanCosts(const ModelProfile& model, const std::vector<std::uint32_t>& page_counts)
    : model_(model), layer_count_(static_cast<std::uint32_t>(model.layers.size())) {
    sums_.resize(model.layers.size() + 1);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const LayerProfile& layer = model.layers[i];
        sums_[i + 1].weights = add_saturated(sums_[i].weights, layer.weight_bytes);
        sums_[i + 1].active = add_saturated(sums_[i].active, layer.active_bytes);
        sums_[i + 1].flops = add_saturated(sums_[i].flops, layer.flops_per_token);
        sums_[i + 1].state = add_saturated(sums_[i].state, state_of(layer, model, page_counts));
    }
}

std::uint64_t PlanCosts::weight_bytes(const StageParts& parts) const {
    std::uint64_t bytes = sums_[parts.layers.end()].weights - sums_[parts.layers.first].weights;
    if (parts.has_input) bytes = add_saturated(bytes, model_.input.weight_bytes);
    if (parts.has_output) bytes = add_saturated(bytes, model_.output.weight_bytes);
    if (parts.has_input && parts.has_output && bytes != kNever)
        bytes -= std::min(bytes, model_.shared_end_bytes);
    return bytes;
}

std::uint64_t PlanCosts::state_bytes(const LayerRange& layers) const {
    const std::uint64_t end = sums_[layers.end()].state;
    return end == kNever ? kNever : end - sums_[layers.first].state;
}

std::uint64_t PlanCosts::scratch_bytes(const StageParts& parts) const {
    std::uint64_t bytes = model_.scratch_bytes;
    if (parts.has_input) bytes = add_saturated(bytes, model_.input.scratch_bytes);
    if (parts.has_output) bytes = add_saturated(bytes, model_.output.scratch_bytes);
    return bytes;
}

std::uint64_t PlanCosts::total_bytes(const StageParts& parts) const {
    return add_saturated(add_saturated(weight_bytes(parts), state_bytes(parts.layers)),
                         scratch_bytes(parts));
}

std::uint64_t PlanCosts::active_bytes(const StageParts& parts) const {
    std::uint64_t bytes = sums_[parts.layers.end()].active - sums_[parts.layers.first].active;
    if (parts.has_input) bytes = add_saturated(bytes, model_.input.active_bytes);
    if (parts.has_output) bytes = add_saturated(bytes, model_.output.active_bytes);
    return bytes;
}

std::uint64_t PlanCosts::flops(const StageParts& parts) const {
    std::uint64_t count = sums_[parts.layers.end()].flops - sums_[parts.layers.first].flops;
    if (parts.has_input) count = add_saturated(count, model_.input.flops_per_token);
    if (parts.has_output) count = add_saturated(count, model_.output.flops_per_token);
    return count;
}

std::uint64_t PlanCosts::row_ns(const StageParts& parts, const WorkerProfile& worker) const {
    const std::uint64_t rate =
        worker.flops_per_second == 0 ? kFlopsUnknown : worker.flops_per_second;
    return duration_ns(flops(parts), rate);
}

std::uint64_t PlanCosts::decode_ns(const StageParts& parts, const WorkerProfile& worker) const {
    const std::uint64_t bandwidth = worker.bandwidth_bytes_per_second == 0
                                        ? kBandwidthUnknown
                                        : worker.bandwidth_bytes_per_second;
    const std::uint64_t compute =
        std::max(duration_ns(active_bytes(parts), bandwidth), row_ns(parts, worker));
    return parts.has_output ? compute : add_saturated(compute, worker.hop_ns);
}

}  // namespace artel::cluster
