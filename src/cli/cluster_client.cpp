// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_client.hpp"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "cli/cluster_options.hpp"
#include "cli/stop_signals.hpp"
#include "gguf/gguf_index.hpp"
#include "quant/type_names.hpp"

namespace artel::cli {
namespace {

using std::chrono::milliseconds;

constexpr Duration kStartPatience = std::chrono::minutes(30);  // the disk may be slow
constexpr Duration kLook = milliseconds(200);                  // for signals, and at what loads
constexpr Duration kSilenceMax = std::chrono::minutes(30);     // a long prompt gives no sign

struct LogitRows {
    std::uint32_t first_position = 0;
    SharedBytes bytes;
};
struct Ended {
    Error error;  // ok: finished
};
using Event = std::variant<cluster::Token, LogitRows, Ended>;

/// Keeps what comes for one request until it is taken. Tokens are bounded by the context, logits by
/// the cluster, which asks logits_waiting() before it computes more (cluster::kLogitsBytesMax).
class EventQueue final : public cluster::RequestSink {
  public:
    void on_refused(const cluster::Refusal& refusal) override {
        add(Ended{refusal_error(refusal)});
    }
    void on_token(std::uint32_t, const cluster::Token& token) override { add(token); }
    void on_logits(std::uint32_t first_position, std::uint32_t, SharedBytes logits) override;
    void on_finished(std::uint32_t, cluster::FinishReason) override { add(Ended{ok()}); }
    void on_failed(const cluster::RequestFailure& failure) override {
        add(Ended{unavailable("{}", failure.message)});
    }
    std::uint64_t logits_waiting() const override {
        MutexLock lock(mutex_);
        return waiting_bytes_;
    }

    /// Nothing: `patience` passed.
    std::optional<Event> take(Duration patience);

  private:
    void add(Event event) {
        MutexLock lock(mutex_);
        events_.push_back(std::move(event));
        changed_.notify_one();
    }

    mutable Mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Event> events_ ARTEL_GUARDED_BY(mutex_);
    std::uint64_t waiting_bytes_ ARTEL_GUARDED_BY(mutex_) = 0;
};

void EventQueue::on_logits(std::uint32_t first_position, std::uint32_t, SharedBytes logits) {
    MutexLock lock(mutex_);
    waiting_bytes_ += logits.size();
    events_.push_back(LogitRows{first_position, std::move(logits)});
    changed_.notify_one();
}

std::optional<Event> EventQueue::take(Duration patience) {
    MutexLock lock(mutex_);
    if (!changed_.wait_for(mutex_, patience, [this] { return !events_.empty(); }))
        return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    if (const auto* rows = std::get_if<LogitRows>(&event)) waiting_bytes_ -= rows->bytes.size();
    return event;
}

/// Bytes from a connection have any alignment.
Error hand_out(const SharedBytes& bytes, const RequestHandlers& handlers) {
    if (!handlers.on_logits) return ok();
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return handlers.on_logits(values);
}

void show_loading(const cluster::Health& health) {
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    for (const cluster::WorkerHealth& worker : health.workers) {
        done += worker.load_bytes_done;
        total += worker.load_bytes_total;
    }
    if (total == 0) return;
    std::fprintf(stderr, "\rloading weights: %3llu %%",
                 static_cast<unsigned long long>(done * 100 / total));
}

Error wait_until_serving(runtime::ClusterService& service) {
    const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
    for (Duration waited{0};; waited += kLook) {
        const Error error = service.wait_until_serving(kLook);
        if (is_terminal) show_loading(service.requests().health());
        if (stop_was_asked(milliseconds(0))) return stopped_by_signal();
        if (error.code() == ErrorCode::kDeadlineExceeded && waited < kStartPatience) continue;
        if (is_terminal) std::fputc('\n', stderr);
        return error;
    }
}

}  // namespace

Error stopped_by_signal() {
    return cancelled("stopped by a signal");
}

std::string client_log_level(const CLI::App& app) {
    const CLI::Option* const option = app.get_option("--log-level");
    return option->count() > 0 ? option->as<std::string>() : "warning";
}

bool wants_workers(const ModelOptions& model) {
    return model.local_workers != 0 || !model.split.empty();
}

Result<std::unique_ptr<runtime::ClusterService>> start_cluster(const ModelOptions& model,
                                                               const ClientOptions& options) {
    block_stop_signals();  // so that what is made here goes, whatever ends the command
    ARTEL_TRY(check_model_options(model));
    ARTEL_ASSIGN(const auto index, gguf::GgufIndex::open(model.model, quant::block_size_of));
    ARTEL_TRY(check_against_model(index.metadata(), model, options.context));
    ARTEL_ASSIGN(const LogLevel level, parse_log_level(options.log_level));
    set_log_level(level);
    ClusterOptions cluster;
    cluster.parallel = options.parallel;
    cluster.chunk = options.chunk;
    cluster.log_level = options.log_level;
    runtime::ClusterServiceOptions service_settings = service_options(model, cluster);
    service_settings.local_workers = wants_workers(model) ? model.worker_count() : 0;
    service_settings.context = options.context;
    service_settings.state_dir.clear();  // such clusters may run side by side
    ARTEL_ASSIGN(auto service, runtime::ClusterService::create(service_settings));
    ARTEL_TRY(wait_until_serving(*service));
    return service;
}

Error run_request(cluster::RequestPort& port, cluster::Request request,
                  const RequestHandlers& handlers) {
    const auto queue = std::make_shared<EventQueue>();
    const cluster::RequestId id = port.submit(std::move(request), queue);
    Error error;
    Duration silence{0};
    while (error.ok()) {
        const std::optional<Event> event = queue->take(kLook);
        silence = event ? Duration::zero() : silence + kLook;
        if (stop_was_asked(milliseconds(0))) {
            error = stopped_by_signal();
        } else if (!event) {
            if (silence < kSilenceMax) continue;
            error =
                deadline_exceeded("the cluster gave no sign for {:.0f} s", seconds(kSilenceMax));
        } else if (const auto* end = std::get_if<Ended>(&*event)) {
            if (end->error.ok()) return ok();
            error = end->error;
        } else if (const auto* token = std::get_if<cluster::Token>(&*event)) {
            if (handlers.on_token) error = handlers.on_token(*token);
        } else {
            error = hand_out(std::get<LogitRows>(*event).bytes, handlers);
        }
    }
    port.cancel(id);
    return error;
}

Error refusal_error(const cluster::Refusal& refusal) {
    if (const auto* prompt = std::get_if<cluster::PromptTooLong>(&refusal))
        return invalid_argument("{} prompt tokens and {} to generate, the context holds {}",
                                prompt->prompt_tokens, prompt->max_tokens, prompt->context);
    if (const auto* full = std::get_if<cluster::QueueFull>(&refusal))
        return unavailable("the queue is full: {} requests wait", full->queued);
    if (const auto* missing = std::get_if<cluster::NotReady>(&refusal))
        return unavailable("{}", missing->missing);
    const auto& invalid = std::get<cluster::InvalidRequest>(refusal);
    return invalid_argument("{} {}", invalid.parameter, invalid.message);
}

}  // namespace artel::cli
