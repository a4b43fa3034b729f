// SPDX-License-Identifier: Apache-2.0
// What a run of layers costs on a worker: bytes and nanoseconds, from prefix sums, in integers that
// saturate instead of wrapping. The planner's only view of the model.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "cluster/profile.hpp"

namespace artel::cluster {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

/// a + b and a * b, at most kNever.
std::uint64_t add_saturated(std::uint64_t a, std::uint64_t b);
std::uint64_t multiply_saturated(std::uint64_t a, std::uint64_t b);
/// amount / per_second in nanoseconds, rounded up.
std::uint64_t duration_ns(std::uint64_t amount, std::uint64_t per_second);

/// Which ends a stage holds beside its layers.
struct StageParts {
    LayerRange layers;
    bool has_input = false;
    bool has_output = false;
};

class PlanCosts {
  public:
    /// `page_counts`: one a state group.
    PlanCosts(const ModelProfile& model, const std::vector<std::uint32_t>& page_counts);

    std::uint64_t weight_bytes(const StageParts& parts) const;
    std::uint64_t state_bytes(const LayerRange& layers) const;
    std::uint64_t scratch_bytes(const StageParts& parts) const;
    std::uint64_t total_bytes(const StageParts& parts) const;
    /// One row of decode, the hop to the next stage included unless the stage has the output.
    std::uint64_t decode_ns(const StageParts& parts, const WorkerProfile& worker) const;
    /// Each further row of a large step.
    std::uint64_t row_ns(const StageParts& parts, const WorkerProfile& worker) const;

    std::uint32_t layer_count() const { return layer_count_; }

  private:
    struct Sums {
        std::uint64_t weights = 0, active = 0, flops = 0, state = 0;
    };
    std::uint64_t active_bytes(const StageParts& parts) const;
    std::uint64_t flops(const StageParts& parts) const;

    const ModelProfile& model_;
    std::uint32_t layer_count_;
    std::vector<Sums> sums_;  // of the layers before each
};

}  // namespace artel::cluster
