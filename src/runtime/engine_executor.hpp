// SPDX-License-Identifier: Apache-2.0
// EngineExecutor: cluster::Executor over engine::Stage, the joint of the two towers. One device
// thread loads stages and runs steps in the order of submit; outcomes come on the loop. It turns a
// step's runs and page tables into a StageBatch, and samples on the last stage. Calls come from the
// loop; `load` jobs too. Nothing of the stage is touched by another thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>

#include "backends/backend.hpp"
#include "cluster/environment.hpp"
#include "cluster/stage_tables.hpp"
#include "engine/sampler.hpp"
#include "engine/stage.hpp"
#include "runtime/event_loop.hpp"
#include "runtime/serial_thread.hpp"

namespace artel::runtime {

class EngineExecutor final : public cluster::Executor {
  public:
    EngineExecutor(EventLoop& loop, std::unique_ptr<backends::Backend> backend);
    ~EngineExecutor() override;

    void set_on_done(std::function<void(cluster::StepOutcome)> on_done) {
        on_done_ = std::move(on_done);
    }
    const backends::Backend& backend() const { return *backend_; }

    /// Makes the stage of `assignment` on the device thread from what `open` gives (index and
    /// weights), then calls `done` on the loop. A stage with the same parts, model and sizes is
    /// kept, with empty state.
    struct Model {
        std::shared_ptr<const gguf::GgufIndex> index;
        std::unique_ptr<engine::WeightSource> weights;
    };
    using OpenModel = std::function<Result<Model>()>;
    void load(const protocol::AssignStage& assignment, OpenModel open,
              engine::LoadProgress progress, std::function<void(Error)> done);
    void unload();

    void submit(protocol::Step step) override;
    void cancel(cluster::Epoch epoch) override;
    std::uint64_t progress() const override { return progress_.load(); }

  private:
    struct Loaded {
        protocol::AssignStage assignment;
        std::shared_ptr<const gguf::GgufIndex> index;
        std::unique_ptr<engine::Stage> stage;
    };
    Error load_stage(const protocol::AssignStage& assignment, const OpenModel& open,
                     const engine::LoadProgress& progress);
    void forget_sequences();
    cluster::StepOutcome run(const protocol::Step& step);
    Result<cluster::StepOutcome> compute(const protocol::Step& step);
    Error take_samples(const protocol::Step& step, const engine::StageResult& result,
                       cluster::StepOutcome& outcome);

    EventLoop& loop_;
    std::function<void(cluster::StepOutcome)> on_done_;
    std::unique_ptr<backends::Backend> backend_;
    std::atomic<std::uint64_t> progress_{0};
    std::atomic<std::uint64_t> generation_{
        0};  // a cancel begins a new one; older steps are skipped

    // Device thread only.
    std::unique_ptr<Loaded> loaded_;
    cluster::StageTables tables_;
    engine::Sampler sampler_;
    std::map<protocol::SequenceId, engine::SamplingState> sampling_;
    std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);  // read on the loop

    SerialThread device_thread_;  // last: stops before what its jobs use goes
};

/// The parts of a model that an assignment names.
models::StageParts stage_parts(const protocol::AssignStage& assignment);

}  // namespace artel::runtime
