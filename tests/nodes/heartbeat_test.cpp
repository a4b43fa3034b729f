// SPDX-License-Identifier: Apache-2.0
// A worker that loads from a slow disk still says that it lives: nothing of a load may run on the
// loop, where heartbeats come from.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "nodes/model_on_disk.hpp"
#include "protocol/hash.hpp"
#include "runtime/loopback_transport.hpp"
#include "runtime/tensor_hashes.hpp"
#include "runtime/worker_node.hpp"

namespace artel::runtime {
namespace {

using protocol::node_id;
using std::chrono::seconds;

constexpr int kBeatsWanted = 3;

/// Counts what it hears, and lets others wait for it.
class Counter {
  public:
    void add() {
        const std::lock_guard lock(mutex_);
        ++count_;
        changed_.notify_all();
    }
    int count() {
        const std::lock_guard lock(mutex_);
        return count_;
    }
    bool wait_for(int count, Duration patience) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, [&] { return count_ >= count; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_ = 0;
};

/// A disk that gives nothing until some heartbeats have been heard.
class SlowWeights final : public engine::WeightSource {
  public:
    SlowWeights(std::unique_ptr<engine::WeightSource> inner, Counter& beats,
                std::atomic<bool>& was_in_time)
        : inner_(std::move(inner)), beats_(beats), was_in_time_(was_in_time) {}
    Error read(std::string_view tensor, std::uint64_t offset,
               std::span<std::byte> target) override {
        if (reads_++ == 0)
            was_in_time_ = beats_.wait_for(beats_.count() + kBeatsWanted, seconds(60));
        return inner_->read(tensor, offset, target);
    }

  private:
    std::unique_ptr<engine::WeightSource> inner_;
    Counter& beats_;
    std::atomic<bool>& was_in_time_;
    int reads_ = 0;
};

/// Assigns all of the model to whoever reports, and serves the manifest's first entry.
class OneStageCoordinator final : public cluster::Node {
  public:
    OneStageCoordinator(cluster::Transport& transport, const ModelFile& model)
        : transport_(transport), model_(model) {}

    void on_connected(cluster::NodeId) override {}
    void on_peer_lost(cluster::NodeId, const std::string&) override {}
    void on_step_done(cluster::StepOutcome) override {}
    void on_storage(cluster::StorageEvent) override {}
    void tick() override {}
    void on_message(cluster::NodeId from, cluster::Message message) override {
        if (std::holds_alternative<protocol::WorkerReport>(message))
            return transport_.send(from, assignment());
        if (std::holds_alternative<protocol::Heartbeat>(message)) return beats.add();
        if (std::holds_alternative<protocol::StageReady>(message)) return ready.add();
        if (const auto* refused = std::get_if<protocol::StageRefused>(&message))
            ADD_FAILURE() << refused->message;
        if (const auto* request = std::get_if<protocol::WeightsRequest>(&message))
            transport_.send(from, answer(*request));
    }

    Counter beats;
    Counter ready;

  private:
    protocol::AssignStage assignment() const {
        protocol::AssignStage assign;
        assign.epoch = {1, 1};
        assign.model = model_.digest();
        assign.model_name = "tiny";
        assign.layers = {0, 4};
        assign.layer_count = 4;
        assign.has_input = assign.has_output = true;
        assign.vocabulary_size = 96;
        assign.context = 64;
        assign.rows_max = 16;
        assign.sequences_max = 1;
        assign.row_bytes = 128;
        assign.groups = {{protocol::StateKind::Paged, 0, 1}};
        return assign;
    }
    protocol::WeightsChunk answer(const protocol::WeightsRequest& request) const {
        const protocol::Hash128 identity = file_identity(model_);
        ByteWriter writer;
        writer.write<std::uint64_t>(identity.high);
        writer.write<std::uint64_t>(identity.low);
        protocol::WeightsChunk chunk;
        chunk.epoch = request.epoch;
        chunk.model = request.model;
        chunk.range = request.range;
        chunk.bytes_total = 1 << 20;
        chunk.payload = SharedBytes(writer.take());
        chunk.hash = protocol::hash_bytes(chunk.payload.span());
        return chunk;
    }
    cluster::Transport& transport_;
    const ModelFile& model_;
};

TEST(WorkerNode, HeartbeatsGoOnWhileWeightsComeFromASlowDisk) {
    const test::ModelOnDisk model;
    const auto file = model.open(model.path());
    EventLoop loop;
    LoopbackNetwork network(loop);
    OneStageCoordinator coordinator(network.door(node_id("coordinator")), *file);
    std::atomic<bool> was_in_time{false};
    WorkerNodeOptions options;
    options.name = "inside";
    options.state_dir = model.directory() / "worker";
    options.memory_bytes = 1ULL << 30;
    options.model_dirs = {model.path().parent_path()};
    options.wrap_weights = [&](std::unique_ptr<engine::WeightSource> inner) {
        return std::make_unique<SlowWeights>(std::move(inner), coordinator.beats, was_in_time);
    };
    auto worker = WorkerNode::create_inside(loop, options, network.door(node_id("inside")),
                                            node_id("coordinator"));
    ASSERT_TRUE(worker.ok()) << worker.status().message();
    network.attach(node_id("coordinator"), &coordinator);
    network.attach(node_id("inside"), &(*worker)->node());
    loop.run([&] { (*worker)->start(); });
    EXPECT_TRUE(coordinator.ready.wait_for(1, seconds(120))) << "the stage was never ready";
    EXPECT_TRUE(was_in_time) << "no heartbeats while a read was waited for";
    loop.stop();
}

}  // namespace
}  // namespace artel::runtime
