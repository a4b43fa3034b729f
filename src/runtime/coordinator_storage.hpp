// SPDX-License-Identifier: Apache-2.0
// CoordinatorStorage: cluster::Storage, coordinator's half: ranges of the served model for workers
// that have no copy, and the term record. Reading happens on a thread of its own; answers come on
// the loop.
#pragma once

#include <memory>

#include "cluster/environment.hpp"
#include "runtime/model_file.hpp"
#include "runtime/record_files.hpp"

namespace artel::runtime {

class CoordinatorStorage final : public cluster::Storage {
  public:
    CoordinatorStorage(EventLoop& loop, std::shared_ptr<const ModelFile> model,
                       std::filesystem::path state_dir)
        : loop_(loop), model_(std::move(model)), records_(loop, std::move(state_dir)) {}
    ~CoordinatorStorage() override { *is_alive_ = false; }

    void set_on_event(std::function<void(cluster::StorageEvent)> on_event) {
        on_event_ = std::move(on_event);
    }

    void load(const protocol::AssignStage&) override {}  // a coordinator holds no stage
    void unload() override {}
    void supply(protocol::WeightsChunk) override {}
    void read(cluster::NodeId requester, const protocol::WeightsRequest& request) override;
    void put(const std::string& key, std::vector<std::byte> record) override;

  private:
    EventLoop& loop_;
    std::shared_ptr<const ModelFile> model_;
    RecordFiles records_;
    std::function<void(cluster::StorageEvent)> on_event_;
    std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
    SerialThread reader_;
};

}  // namespace artel::runtime
