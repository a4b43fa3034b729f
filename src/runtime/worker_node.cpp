// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker_node.hpp"

#include <future>
#include <thread>

#include "base/file.hpp"
#include "base/log.hpp"
#include "cluster/term.hpp"
#include "net/identity.hpp"
#include "protocol/version.hpp"
#include "runtime/device.hpp"
#include "runtime/probe.hpp"
#include "runtime/system_seed.hpp"

namespace artel::runtime {
namespace {

constexpr const char* kCoordinatorName = "coordinator";
constexpr const char* kCoordinatorAddressFile = "coordinator.address";

/// One attempt to get a certificate.
Result<net::NodeIdentity> enrol_once(EventLoop& loop, const net::JoinKey& key,
                                     const std::string& name) {
    net::TransportOptions options;
    options.versions = {protocol::kVersionMin, protocol::kVersion, protocol::kSchemaHash};
    auto promise = std::make_shared<std::promise<Result<net::NodeIdentity>>>();
    auto answer = promise->get_future();
    net::enrol(loop.io(), key, name, options,
               [promise](Result<net::NodeIdentity> got) { promise->set_value(std::move(got)); });
    return answer.get();
}

/// The identity in the state dir, or a new one by the join key. A coordinator that is not up yet is
/// waited for.
Result<net::NodeIdentity> obtain_identity(EventLoop& loop, const WorkerNodeOptions& options,
                                          std::string& coordinator) {
    if (!options.join_key.empty()) {
        ARTEL_ASSIGN(const net::JoinKey key, net::JoinKey::parse(options.join_key));
        coordinator = key.address;
        auto held = net::NodeIdentity::load(options.state_dir);
        if (held.ok() && *net::certificate_fingerprint(held->authority_pem) == key.authority &&
            held->node == options.name)
            return held;
        for (int attempt = 0;; ++attempt) {
            auto identity = enrol_once(loop, key, options.name);
            if (identity.ok()) {
                ARTEL_TRY(identity->store(options.state_dir));
                ARTEL_TRY(write_file_atomically(options.state_dir / kCoordinatorAddressFile,
                                                as_bytes(coordinator), 0600));
                return identity;
            }
            const bool may_pass = identity.status().code() == ErrorCode::kUnavailable ||
                                  identity.status().code() == ErrorCode::kDeadlineExceeded;
            if (!may_pass || attempt >= 30)
                return with_context(identity.status(), "joining the cluster");
            log_info("the coordinator cannot be reached yet",
                     {{"error", std::string(identity.status().message())}});
            std::this_thread::sleep_for(std::chrono::seconds(1));
        }
    }
    auto held = net::NodeIdentity::load(options.state_dir);
    if (!held.ok())
        return with_context(
            held.status(),
            "no join key was given, and the state dir holds no certificate from an earlier join");
    ARTEL_ASSIGN(coordinator, read_file(options.state_dir / kCoordinatorAddressFile, 4096));
    return held;
}

}  // namespace

WorkerNode::WorkerNode(EventLoop& loop, WorkerNodeOptions options)
    : loop_(loop), options_(std::move(options)), random_(system_seed()) {}

WorkerNode::~WorkerNode() = default;

Error WorkerNode::open_device() {
    ARTEL_ASSIGN(auto backend, runtime::open_device(options_.device, options_.threads));
    executor_ = std::make_unique<EngineExecutor>(loop_, std::move(backend));
    return ok();
}

void WorkerNode::probe() {
    const backends::DeviceDescription device = executor_->backend().describe();
    log_info("device", {{"backend", device.backend},
                        {"device", device.device},
                        {"isa", device.isa},
                        {"threads", device.threads}});
    probed_ = probe_worker(options_.memory_bytes, options_.threads, device.arithmetic_class,
                           device.device);
}

void WorkerNode::assemble(cluster::Transport& transport, cluster::NodeId coordinator,
                          const std::string& coordinator_address, cluster::Epoch stored) {
    cluster::WorkerOptions worker;
    worker.report = probed_;
    worker.report.name = options_.name;
    worker.report.listen_address =
        options_.advertise.empty() ? listen_address_ : options_.advertise;
    worker.coordinator = coordinator;
    worker.coordinator_address = coordinator_address;
    worker.stored_epoch = stored;
    storage_ = std::make_unique<WorkerStorage>(
        loop_, *executor_,
        WorkerStorageOptions{.state_dir = options_.state_dir,
                             .model_dirs = options_.model_dirs,
                             .cache_dir = options_.cache_dir,
                             .memory_bytes = worker.report.devices.front().memory_bytes,
                             .wrap_weights = options_.wrap_weights});
    worker_ = std::make_unique<cluster::Worker>(
        std::move(worker),
        cluster::Environment{clock_, transport, *executor_, *storage_, random_, observer_});
    executor_->set_on_done(
        [this](cluster::StepOutcome outcome) { worker_->on_step_done(std::move(outcome)); });
    storage_->set_on_event(
        [this](cluster::StorageEvent event) { worker_->on_storage(std::move(event)); });
}

Result<std::unique_ptr<WorkerNode>> WorkerNode::create(EventLoop& loop,
                                                       const WorkerNodeOptions& options) {
    ARTEL_TRY(net::check_node_name(options.name));
    ARTEL_TRY(with_context(
        net::check_can_be_dialled(options.advertise.empty() ? options.listen : options.advertise),
        "neighbours dial --advertise, or else --listen"));
    std::unique_ptr<WorkerNode> made(new WorkerNode(loop, options));
    ARTEL_TRY(made->open_device());
    ARTEL_TRY(make_private_directory(options.state_dir));
    // Also shows, before a join key is spent, that the certificate can be written.
    auto lock = lock_directory(options.state_dir);
    if (!lock.ok())
        return with_context(lock.status(),
                            "the state dir (each worker of a machine needs one of its own: see "
                            "--name and --state-dir)");
    made->state_dir_lock_ = *std::move(lock);
    std::string coordinator_address;
    ARTEL_ASSIGN(const net::NodeIdentity identity,
                 obtain_identity(loop, options, coordinator_address));
    made->options_.name = identity.node;
    ARTEL_ASSIGN(const cluster::Epoch stored,
                 RecordFiles::read_epoch(options.state_dir, cluster::kWorkerEpochKey));
    made->probe();
    ARTEL_TRY(made->open_links(identity, coordinator_address, stored));
    return made;
}

/// In one turn of the loop, so that a neighbour that dials finds the whole worker or nobody.
Error WorkerNode::open_links(const net::NodeIdentity& identity,
                             const std::string& coordinator_address, cluster::Epoch stored) {
    ARTEL_ASSIGN(auto context, net::TlsContext::create(identity));
    ARTEL_ASSIGN(const auto parts, net::split_address(options_.listen));
    transport_ =
        std::make_unique<ClusterTransport>(loop_, std::move(context), ClusterTransportOptions{});
    Error error;
    loop_.run([&] {
        const auto port = transport_->listen(options_.listen);
        if (!port.ok()) {
            error = port.status();
            return;
        }
        listen_address_ = parts.first + ":" + std::to_string(*port);
        assemble(*transport_, protocol::node_id(kCoordinatorName), coordinator_address, stored);
        transport_->set_node(*worker_);
    });
    return error;
}

Result<std::unique_ptr<WorkerNode>> WorkerNode::create_inside(EventLoop& loop,
                                                              const WorkerNodeOptions& options,
                                                              cluster::Transport& transport,
                                                              cluster::NodeId coordinator) {
    std::unique_ptr<WorkerNode> made(new WorkerNode(loop, options));
    ARTEL_TRY(made->open_device());
    made->probe();
    made->listen_address_ = "inside:0";
    made->assemble(transport, coordinator, "inside:0", {});
    return made;
}

void WorkerNode::start() {
    worker_->start();
    // Heartbeats come from the loop, which never computes; steps run on the device thread.
    loop_.every(std::chrono::milliseconds(10), [this] {
        if (worker_) worker_->tick();
    });
}

void WorkerNode::stop() {
    loop_.run([this] {
        if (transport_) transport_->stop();
    });
}

}  // namespace artel::runtime
