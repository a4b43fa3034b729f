// SPDX-License-Identifier: Apache-2.0
// WorkerStorage: how a worker comes by its weights (cluster::Storage, worker's half). In this
// order, tensor by tensor: a model file in --model-dir whose index has the digest of the
// assignment; the cache directory, where an earlier stream left it; ranges streamed from the
// coordinator, which then go into the cache. A tensor of a file or of the cache is used only if its
// hash is the coordinator's (weight_sources.hpp). Calls come from the loop, loading happens on the
// executor's device thread, so that nothing here ever delays a heartbeat; every wait has a
// deadline.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "cluster/environment.hpp"
#include "runtime/engine_executor.hpp"
#include "runtime/record_files.hpp"

namespace artel::runtime {

struct WorkerStorageOptions {
    std::filesystem::path state_dir;
    std::vector<std::filesystem::path> model_dirs;
    std::filesystem::path cache_dir;  // empty: no cache
    std::uint64_t memory_bytes = 0;   // an assignment beyond it is refused
    /// For tests: stands between the weights and the stage, e.g. as a slow disk.
    std::function<std::unique_ptr<engine::WeightSource>(std::unique_ptr<engine::WeightSource>)>
        wrap_weights;
};

class RangeStream;

class WorkerStorage final : public cluster::Storage {
  public:
    WorkerStorage(EventLoop& loop, EngineExecutor& executor, WorkerStorageOptions options);
    ~WorkerStorage() override;

    void set_on_event(std::function<void(cluster::StorageEvent)> on_event) {
        on_event_ = std::move(on_event);
    }

    void load(const protocol::AssignStage& assignment) override;
    void unload() override;
    void supply(protocol::WeightsChunk chunk) override;
    void read(cluster::NodeId requester, const protocol::WeightsRequest& request) override;
    void put(const std::string& key, std::vector<std::byte> record) override;

  private:
    void report(std::uint64_t load, cluster::StorageEvent event);

    EventLoop& loop_;
    EngineExecutor& executor_;
    WorkerStorageOptions options_;
    RecordFiles records_;
    std::function<void(cluster::StorageEvent)> on_event_;
    std::uint64_t load_ = 0;               // number of the current load
    std::shared_ptr<RangeStream> stream_;  // of the current load
    std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace artel::runtime
