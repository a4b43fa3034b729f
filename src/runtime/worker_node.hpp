// SPDX-License-Identifier: Apache-2.0
// WorkerNode: a worker put together: device, storage, state machine and, for a process of its own,
// links. In a process of its own (`artel worker`): create(), then it serves until stop(). Inside
// another process
// (`artel run` without worker processes) the owner gives the transport instead.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "cluster/worker.hpp"
#include "runtime/cluster_transport.hpp"
#include "runtime/engine_executor.hpp"
#include "runtime/log_observer.hpp"
#include "runtime/worker_storage.hpp"

namespace artel::runtime {

struct WorkerNodeOptions {
    std::string name;
    std::string device = "cpu";
    std::uint32_t threads = 1;
    std::uint64_t memory_bytes = 0;  // 0: what is available
    std::filesystem::path state_dir;
    std::vector<std::filesystem::path> model_dirs;
    std::filesystem::path cache_dir;
    /// For tests: stands between the weights and the stage (WorkerStorageOptions).
    std::function<std::unique_ptr<engine::WeightSource>(std::unique_ptr<engine::WeightSource>)>
        wrap_weights;
    // Own process only:
    std::string join_key;                // empty: the state dir holds a certificate
    std::string listen = "127.0.0.1:0";  // for neighbours
    std::string advertise;               // given to them; empty: the address listened on
};

class WorkerNode {
  public:
    /// With links of its own. Enrols first when there is no certificate. Errors: those of the
    /// device, of the state dir, of enrolment (retried for a while when the coordinator cannot be
    /// reached).
    static Result<std::unique_ptr<WorkerNode>> create(EventLoop& loop,
                                                      const WorkerNodeOptions& options);
    /// On a transport of the owner; `coordinator` is the node to report to.
    static Result<std::unique_ptr<WorkerNode>> create_inside(EventLoop& loop,
                                                             const WorkerNodeOptions& options,
                                                             cluster::Transport& transport,
                                                             cluster::NodeId coordinator);
    ~WorkerNode();

    cluster::Node& node() { return *worker_; }
    cluster::NodeId id() const { return protocol::node_id(options_.name); }
    const std::string& listen_address() const { return listen_address_; }
    /// Begins to report to the coordinator. On the loop.
    void start();
    /// Leaves the cluster. Not on the loop.
    void stop();

  private:
    WorkerNode(EventLoop& loop, WorkerNodeOptions options);
    Error open_device();
    void probe();
    Error open_links(const net::NodeIdentity& identity, const std::string& coordinator_address,
                     cluster::Epoch stored);
    void assemble(cluster::Transport& transport, cluster::NodeId coordinator,
                  const std::string& coordinator_address, cluster::Epoch stored);

    EventLoop& loop_;
    WorkerNodeOptions options_;
    std::string listen_address_;
    protocol::WorkerReport probed_;  // device, memory and speed, before anybody is told
    OsClock clock_;
    Random random_;
    LogObserver observer_;
    Descriptor state_dir_lock_{-1};                // own process only
    std::unique_ptr<ClusterTransport> transport_;  // own process only
    std::unique_ptr<EngineExecutor> executor_;
    std::unique_ptr<WorkerStorage> storage_;
    std::unique_ptr<cluster::Worker> worker_;
};

}  // namespace artel::runtime
