// SPDX-License-Identifier: Apache-2.0
// CoordinatorStorage: cluster::Storage, coordinator's half: ranges of the served model for workers
// that have no copy, hashes of its tensors for those that have one, and the term record. Reading
// happens on a thread of its own, hashing on another, since a large tensor takes its time; answers
// come on the loop. A hash is computed when a worker asks for it: start is not slowed.
#pragma once

#include <memory>

#include "cluster/environment.hpp"
#include "runtime/model_file.hpp"
#include "runtime/record_files.hpp"
#include "runtime/tensor_hashes.hpp"

namespace artel::runtime {

class CoordinatorStorage final : public cluster::Storage {
  public:
    CoordinatorStorage(EventLoop& loop, std::shared_ptr<const ModelFile> model,
                       const std::filesystem::path& state_dir)
        : loop_(loop),
          model_(std::move(model)),
          records_(loop, state_dir),
          identity_(file_identity(*model_)),
          hashes_(model_, state_dir) {}
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
    Result<std::vector<std::byte>> read_manifest(const protocol::WeightsRange& range,
                                                 std::uint64_t& part_bytes);
    void answer(cluster::NodeId requester, const protocol::WeightsRequest& request,
                const Result<std::vector<std::byte>>& bytes, std::uint64_t part_bytes);

    EventLoop& loop_;
    std::shared_ptr<const ModelFile> model_;
    RecordFiles records_;
    const protocol::Hash128 identity_;  // as of the start
    std::function<void(cluster::StorageEvent)> on_event_;
    std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
    TensorHashes hashes_;  // of the hasher's thread
    SerialThread reader_;
    SerialThread hasher_;
};

}  // namespace artel::runtime
