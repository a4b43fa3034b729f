// SPDX-License-Identifier: Apache-2.0
#include "runtime/cluster_service.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/file.hpp"
#include "base/log.hpp"
#include "cluster/coordinator.hpp"
#include "cluster/term.hpp"
#include "models/description.hpp"
#include "net/join_desk.hpp"
#include "runtime/cluster_transport.hpp"
#include "runtime/coordinator_storage.hpp"
#include "runtime/log_observer.hpp"
#include "runtime/loopback_transport.hpp"
#include "runtime/model_profile.hpp"
#include "runtime/request_port.hpp"
#include "runtime/system_seed.hpp"
#include "runtime/worker_node.hpp"
#include "runtime/worker_supervisor.hpp"

namespace artel::runtime {
namespace {

using std::chrono::milliseconds;
constexpr const char* kCoordinatorName = "coordinator";
constexpr const char* kInsideName = "inside";

/// The coordinator computes nothing.
class NoExecutor final : public cluster::Executor {
  public:
    void submit(protocol::Step) override {}
    void cancel(cluster::Epoch) override {}
    std::uint64_t progress() const override { return 0; }
};

std::uint32_t threads_for(const ClusterServiceOptions& options) {
    if (options.threads > 0) return options.threads;
    const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
    return std::max(1U, cores / std::max(1U, options.local_workers));
}

/// A directory that goes when its owner does.
class TemporaryDirectory {
  public:
    static Result<std::unique_ptr<TemporaryDirectory>> create() {
        std::string name = (std::filesystem::temp_directory_path() / "artel-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) return errno_error("making a temporary directory");
        return std::unique_ptr<TemporaryDirectory>(new TemporaryDirectory(name));
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const { return path_; }

  private:
    explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
    std::filesystem::path path_;
};

}  // namespace

class ClusterService::Assembly {
  public:
    explicit Assembly(ClusterServiceOptions options)
        : options_(std::move(options)), random_(system_seed()) {}
    ~Assembly() { stop(Duration::zero()); }

    Error open();
    void stop(Duration patience);
    Error wait_until_serving(Duration patience);

    cluster::RequestPort& port() { return *port_; }
    const ModelFile& model() const { return *model_; }
    const std::string& join_key() const { return join_key_; }
    Result<std::string> make_join_key(std::uint32_t uses);

  private:
    bool is_inside() const { return options_.local_workers == 0 && options_.expect_workers == 0; }
    Error open_model();
    Error open_links();
    net::EnrolReply enrol(const net::EnrolRequest& request);
    Error open_inside_worker();
    cluster::CoordinatorOptions coordinator_options(cluster::Epoch stored) const;
    void make_coordinator(cluster::Transport& transport, cluster::Epoch stored);
    std::vector<LocalWorker> children() const;
    void start_children();
    Error publish_join_key();

    ClusterServiceOptions options_;
    std::unique_ptr<TemporaryDirectory> temporary_;
    std::shared_ptr<const ModelFile> model_;
    cluster::ModelProfile profile_;
    OsClock clock_;
    Random random_;
    LogObserver observer_;
    NoExecutor no_executor_;
    std::string address_;  // of the worker port
    std::string join_key_;
    bool is_stopped_ = false;

    std::unique_ptr<EventLoop> loop_;
    std::unique_ptr<LoopbackNetwork> loopback_;
    std::unique_ptr<net::JoinDesk> desk_;
    std::unique_ptr<ClusterTransport> transport_;
    std::unique_ptr<CoordinatorStorage> storage_;
    std::unique_ptr<cluster::Coordinator> coordinator_;
    std::unique_ptr<LoopRequestPort> port_;
    std::unique_ptr<WorkerNode> inside_;
    std::unique_ptr<WorkerSupervisor> supervisor_;
};

Error ClusterService::Assembly::open_model() {
    ARTEL_ASSIGN(model_, ModelFile::open(options_.model));
    const auto state_type = options_.has_f32_state ? graph::StateType::F32 : graph::StateType::F16;
    ARTEL_ASSIGN(const models::ModelDescription description,
                 models::describe(model_->index(), state_type));
    if (!description.unused.empty())
        log_warning("the model file holds tensors that are not used",
                    {{"count", description.unused.size()},
                     {"bytes", description.unused_bytes},
                     {"first", description.unused.front().name}});
    std::string name = options_.model.filename().string();
    profile_ = model_profile(name, model_->index(), model_->digest(), description, options_.chunk);
    return ok();
}

cluster::CoordinatorOptions ClusterService::Assembly::coordinator_options(
    cluster::Epoch stored) const {
    cluster::CoordinatorOptions made;
    made.model = profile_;
    made.plan = {.context = options_.context,
                 .parallel = options_.parallel,
                 .chunk_rows = options_.chunk,
                 .split = options_.split};
    made.limits.sequences = options_.parallel;
    made.limits.chunk_rows = options_.chunk;
    made.limits.queued_requests = options_.queued_requests_max;
    for (const LocalWorker& child : children()) made.expected_workers.push_back(child.name);
    if (is_inside()) made.expected_workers.emplace_back(kInsideName);
    made.expected_count = std::max(1U, options_.local_workers + options_.expect_workers);
    made.stored_epoch = stored;
    return made;
}

void ClusterService::Assembly::make_coordinator(cluster::Transport& transport,
                                                cluster::Epoch stored) {
    storage_ = std::make_unique<CoordinatorStorage>(*loop_, model_, options_.state_dir);
    coordinator_ = std::make_unique<cluster::Coordinator>(
        coordinator_options(stored),
        cluster::Environment{clock_, transport, no_executor_, *storage_, random_, observer_});
    storage_->set_on_event(
        [this](cluster::StorageEvent event) { coordinator_->on_storage(std::move(event)); });
    port_ = std::make_unique<LoopRequestPort>(*loop_, *coordinator_);
    observer_.on_health_changed = [this] {
        if (port_) port_->refresh();  // at once: who was told of a failure may ask what holds now
    };
    observer_.on_worker_lost = [this](const std::string& name) {
        if (supervisor_) supervisor_->declare_lost(name);
    };
}

Error ClusterService::Assembly::open() {
    if (options_.state_dir.empty()) {
        ARTEL_ASSIGN(temporary_, TemporaryDirectory::create());
        options_.state_dir = temporary_->path();
    }
    ARTEL_TRY(make_private_directory(options_.state_dir));
    ARTEL_TRY(open_model());
    loop_ = std::make_unique<EventLoop>();
    if (is_inside())
        ARTEL_TRY(open_inside_worker());
    else
        ARTEL_TRY(open_links());
    loop_->every(milliseconds(10), [this] { coordinator_->tick(); });
    loop_->every(milliseconds(200), [this] { port_->refresh(); });
    loop_->run([this] { port_->refresh(); });
    if (inside_) loop_->run([this] { inside_->start(); });
    if (options_.local_workers > 0) start_children();
    return ok();
}

Error ClusterService::Assembly::open_inside_worker() {
    loopback_ = std::make_unique<LoopbackNetwork>(*loop_);
    const auto coordinator = protocol::node_id(kCoordinatorName);
    make_coordinator(loopback_->door(coordinator), {});
    const auto id = protocol::node_id(kInsideName);
    WorkerNodeOptions worker;
    worker.name = kInsideName;
    worker.device = options_.device;
    worker.threads = threads_for(options_);
    worker.state_dir = options_.state_dir / "inside";
    worker.model_dirs = {std::filesystem::absolute(options_.model).parent_path()};
    ARTEL_ASSIGN(inside_,
                 WorkerNode::create_inside(*loop_, worker, loopback_->door(id), coordinator));
    loopback_->attach(coordinator, coordinator_.get());
    loopback_->attach(id, &inside_->node());
    return ok();
}

Error ClusterService::Assembly::open_links() {
    if (options_.expect_workers > 0)
        ARTEL_TRY(with_context(net::check_can_be_dialled(options_.worker_listen),
                               "--worker-listen is the address in the join key"));
    ARTEL_ASSIGN(net::ClusterAuthority authority,
                 net::ClusterAuthority::load_or_create(options_.state_dir));
    ARTEL_ASSIGN(const net::NodeIdentity identity, authority.issue(kCoordinatorName));
    desk_ = std::make_unique<net::JoinDesk>(std::move(authority));
    ARTEL_ASSIGN(auto context, net::TlsContext::create(identity));
    ARTEL_ASSIGN(const cluster::Epoch stored,
                 RecordFiles::read_epoch(options_.state_dir, cluster::kCoordinatorTermKey));
    transport_ = std::make_unique<ClusterTransport>(
        *loop_, std::move(context),
        ClusterTransportOptions{.limits = {}, .on_enrol = [this](const net::EnrolRequest& request) {
                                    return enrol(request);
                                }});
    make_coordinator(*transport_, stored);
    transport_->set_node(*coordinator_);
    Result<std::uint16_t> port = internal_error("not listening");
    loop_->run([&] { port = transport_->listen(options_.worker_listen); });
    ARTEL_TRY(port);
    ARTEL_ASSIGN(const auto parts, net::split_address(options_.worker_listen));
    address_ = parts.first + ":" + std::to_string(*port);
    return options_.expect_workers > 0 ? publish_join_key() : ok();
}

net::EnrolReply ClusterService::Assembly::enrol(const net::EnrolRequest& request) {
    return desk_->enrol(request, clock_.now(), transport_->is_linked(request.node));
}

Error ClusterService::Assembly::publish_join_key() {
    ARTEL_ASSIGN(join_key_, make_join_key(options_.expect_workers));
    if (options_.join_key_file.empty()) return ok();
    return write_file_atomically(options_.join_key_file, as_bytes(join_key_ + "\n"), 0600);
}

Result<std::string> ClusterService::Assembly::make_join_key(std::uint32_t uses) {
    if (!desk_) return failed_precondition("this cluster has no worker port to join at");
    Result<net::JoinKey> key = internal_error("no key");
    loop_->run([&] { key = desk_->make_key(address_, uses, clock_.now()); });
    ARTEL_TRY(key);
    return key->to_text();
}

std::vector<LocalWorker> ClusterService::Assembly::children() const {
    std::vector<LocalWorker> children;
    for (std::uint32_t i = 0; i < options_.local_workers; ++i) {
        const std::string name = fmt::format("local-{}", i + 1);
        children.push_back(
            {name,
             {options_.program.string(), "--log-level", options_.log_level, "worker", "--join",
              fmt::format("@/dev/fd/{}", ChildProcess::kInheritedDescriptor), "--name", name,
              "--state-dir", (options_.state_dir / name).string(), "--threads",
              std::to_string(threads_for(options_)), "--device", options_.device, "--model-dir",
              std::filesystem::absolute(options_.model).parent_path().string()}});
    }
    return children;
}

/// Children are started from a thread that lives as long as they do: Linux ends a child with the
/// thread that started it. The loop's threads do.
void ClusterService::Assembly::start_children() {
    supervisor_ = std::make_unique<WorkerSupervisor>(children(), [this](const std::string& name) {
        const auto key = desk_->make_key(address_, 1, clock_.now(), name);
        return key.ok() ? key->to_text() : std::string();
    });
    loop_->every(milliseconds(100), [this] {
        if (supervisor_) supervisor_->tick(clock_.now());
    });
}

Error ClusterService::Assembly::wait_until_serving(Duration patience) {
    const TimePoint end = clock_.now() + patience;
    while (true) {
        const cluster::Health health = port_->health();
        if (health.state == cluster::ServiceState::Serving) return ok();
        if (health.state == cluster::ServiceState::Stopped)
            return failed_precondition("{}", health.message);
        if (!health.plan_refusal.empty() && options_.expect_workers == 0)
            return failed_precondition("{}", health.plan_refusal);
        if (clock_.now() >= end)
            return deadline_exceeded("the cluster is not ready: {}", health.message);
        std::this_thread::sleep_for(milliseconds(5));
    }
}

void ClusterService::Assembly::stop(Duration patience) {
    if (std::exchange(is_stopped_, true) || !loop_) return;
    if (coordinator_) {
        loop_->run([this] { coordinator_->drain(); });
        const TimePoint end = clock_.now() + patience;
        while (clock_.now() < end) {
            bool is_idle = false;
            loop_->run([&] {
                const cluster::Health health = coordinator_->health();
                is_idle = health.requests_queued + health.requests_running == 0;
            });
            if (is_idle) break;
            std::this_thread::sleep_for(milliseconds(20));
        }
    }
    if (supervisor_)
        loop_->run([this] {
            supervisor_->stop(milliseconds(2000));
            supervisor_.reset();
        });
    if (transport_) loop_->run([this] { transport_->stop(); });
    loop_->stop();  // no handler runs from here on
}

ClusterService::ClusterService(std::unique_ptr<Assembly> assembly)
    : assembly_(std::move(assembly)) {}
ClusterService::~ClusterService() = default;

Result<std::unique_ptr<ClusterService>> ClusterService::create(
    const ClusterServiceOptions& options) {
    auto assembly = std::make_unique<Assembly>(options);
    ARTEL_TRY(assembly->open());
    return std::unique_ptr<ClusterService>(new ClusterService(std::move(assembly)));
}

cluster::RequestPort& ClusterService::requests() {
    return assembly_->port();
}
const ModelFile& ClusterService::model() const {
    return assembly_->model();
}
std::string ClusterService::join_key() const {
    return assembly_->join_key();
}
Result<std::string> ClusterService::make_join_key(std::uint32_t uses) {
    return assembly_->make_join_key(uses);
}
Error ClusterService::wait_until_serving(Duration patience) {
    return assembly_->wait_until_serving(patience);
}
void ClusterService::stop(Duration patience) {
    assembly_->stop(patience);
}

}  // namespace artel::runtime
