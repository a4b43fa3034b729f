// SPDX-License-Identifier: Apache-2.0
// HashExecutor: a device that computes the fake model. A step takes the time that the device's
// speed gives; its results are hashes whose state lives in pages, exactly as a real stage's would.
// It checks what no stage may ever see (a second epoch, a page owned twice, a step out of order)
// and reports it to the owner.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "cluster/stage_tables.hpp"
#include "simulation/event_queue.hpp"
#include "simulation/hash_model.hpp"

namespace artel::simulation {

struct HashDevice {
    Duration step_overhead = std::chrono::microseconds(100);
    Duration layer_row = std::chrono::microseconds(5);  // for one row through one layer
    double slowdown = 1.0;
    bool fails_next_step = false;  // device lost
};

class HashExecutor final : public cluster::Executor {
  public:
    HashExecutor(EventQueue& queue, const cluster::ModelProfile& model, HashDevice& device,
                 std::function<void(cluster::StepOutcome)> on_done,
                 std::function<void(std::string)> on_violation);

    /// A stage was loaded: its layers, ends and page counts hold from now on, with empty state.
    void load(const protocol::AssignStage& assignment);
    void unload() { assignment_.reset(); }

    void submit(protocol::Step step) override;
    void cancel(cluster::Epoch epoch) override;
    std::uint64_t progress() const override;

  private:
    struct Sampling {
        protocol::SamplingParameters parameters;
        std::map<protocol::TokenId, std::uint32_t> generated;
    };
    void start_next();
    cluster::StepOutcome compute(const protocol::Step& step);
    HashRow run_layers(HashRow row, protocol::SequenceId sequence, std::uint32_t position);
    std::uint64_t& state_at(std::uint32_t layer, std::uint32_t group,
                            const cluster::StageTables::Sequence& sequence, std::uint32_t position);
    void check_pages(const protocol::Step& step);
    protocol::TokenId sample(const protocol::StepRun& run, HashRow final, std::uint32_t position);
    Duration time_of(const protocol::Step& step) const;

    EventQueue& queue_;
    const cluster::ModelProfile& model_;
    HashDevice& device_;
    std::function<void(cluster::StepOutcome)> on_done_;
    std::function<void(std::string)> on_violation_;
    std::optional<protocol::AssignStage> assignment_;
    cluster::StageTables tables_;
    std::map<protocol::SequenceId, Sampling> sampling_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t>
        pages_;
    std::map<std::pair<std::uint32_t, protocol::PageId>, protocol::SequenceId> page_owners_;
    std::deque<protocol::Step> waiting_;
    bool is_busy_ = false;
    bool is_broken_ = false;  // since a device error, until the next cancel
    TimePoint busy_since_{};
    std::uint64_t generation_ = 0;  // of the state; a cancel begins a new one
    std::uint64_t steps_done_ = 0;
};

}  // namespace artel::simulation
