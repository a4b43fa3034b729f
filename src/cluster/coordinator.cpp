// SPDX-License-Identifier: Apache-2.0
#include "cluster/coordinator.hpp"

#include <algorithm>
#include <utility>

#include "protocol/limits.hpp"

namespace artel::cluster {

using protocol::AssignStage;
using protocol::Step;

namespace {

Limits with_plan(Limits limits, const PlanRequest& plan) {
    limits.sequences = std::clamp(plan.parallel, 1U, kSequencesMax);
    limits.chunk_rows = std::clamp(plan.chunk_rows, 1U, protocol::kRowsMax);
    limits.decode_rows = std::clamp(limits.decode_rows, 1U, protocol::kRunsMax);
    return limits;
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, Environment environment)
    : options_(std::move(options)),
      environment_(environment),
      membership_(options_.expected_workers, options_.expected_count, options_.limits.timeouts),
      requests_(with_plan(options_.limits, options_.plan)),
      epoch_{options_.stored_epoch.term, 0},
      largest_term_seen_(options_.stored_epoch.term) {
    options_.limits = with_plan(options_.limits, options_.plan);
    options_.plan.parallel = options_.limits.sequences;
    options_.plan.chunk_rows = options_.limits.chunk_rows;
    message_ = membership_.missing();
}

Coordinator::~Coordinator() = default;

// ---- events ----

void Coordinator::on_connected(NodeId peer) {
    membership_.heard(peer, environment_.clock.now());  // the rest follows with its report
}

void Coordinator::on_peer_lost(NodeId peer, const std::string& reason) {
    if (membership_.find(peer) == nullptr) return;
    environment_.observer.note(Severity::Info, "link to a worker lost: " + reason);
    membership_.on_link_lost(peer, environment_.clock.now());
}

void Coordinator::on_step_done(StepOutcome) {}

void Coordinator::on_message(NodeId from, Message message) {
    if (state_ == ServiceState::Stopped) return;
    membership_.heard(from, environment_.clock.now());
    if (auto* report = std::get_if<protocol::WorkerReport>(&message))
        return on_worker_report(from, std::move(*report));
    if (membership_.find(from) == nullptr) return;  // given up, or it has not reported yet
    struct Dispatch {
        Coordinator& self;
        NodeId from;
        void operator()(const protocol::Heartbeat& m) const { self.on_heartbeat(from, m); }
        void operator()(const protocol::PeerLost& m) const { self.on_peer_lost_report(from, m); }
        void operator()(const protocol::LoadProgress& m) const { self.on_load_progress(from, m); }
        void operator()(const protocol::StageReady& m) const { self.on_stage_ready(from, m); }
        void operator()(const protocol::StageRefused& m) const { self.on_stage_refused(from, m); }
        void operator()(const protocol::Drain& m) const { self.on_drain(from, m); }
        void operator()(const protocol::WeightsRequest& m) const {
            self.on_weights_request(from, m);
        }
        void operator()(protocol::StepLogits& m) const { self.on_step_logits(from, std::move(m)); }
        void operator()(protocol::StepResult& m) const { self.on_step_result(from, std::move(m)); }
        void operator()(const protocol::StepFailed& m) const { self.on_step_failed(from, m); }
        void operator()(const protocol::WorkerReport&) const {}  // handled above
        // What only a coordinator sends.
        void operator()(const AssignStage&) const { self.ignore("AssignStage"); }
        void operator()(const protocol::UnloadStage&) const { self.ignore("UnloadStage"); }
        void operator()(const protocol::WeightsChunk&) const { self.ignore("WeightsChunk"); }
        void operator()(const Step&) const { self.ignore("Step"); }
    };
    std::visit(Dispatch{*this, from}, message);
}

void Coordinator::ignore(const char* message) {
    environment_.observer.note(
        Severity::Warning, fmt::format("ignored a {}: not for a coordinator to receive", message));
}

void Coordinator::on_storage(StorageEvent event) {
    if (const auto* stored = std::get_if<RecordStored>(&event)) return on_record_stored(*stored);
    auto* read = std::get_if<RangeRead>(&event);
    if (read == nullptr) return;
    auto asked = ranges_asked_.find(read->requester);
    if (asked != ranges_asked_.end() && asked->second > 0) --asked->second;
    if (is_current(read->chunk.epoch))
        environment_.transport.send(read->requester, std::move(read->chunk));
}

void Coordinator::tick() {
    if (state_ == ServiceState::Stopped) return;
    const TimePoint now = environment_.clock.now();
    notice_stall(now);
    send_heartbeats(now);
    for (const LostWorker& lost : membership_.expire(now)) lose_worker(lost);
    requests_.expire(now);
    check_queue(now);
    check_load_progress(now);
    check_step_progress(now);
    if (state_ == ServiceState::WaitingForWorkers) try_plan();
    pump();
}

/// On a machine with too much to do, or one that slept, ticks come late. What the others sent
/// meanwhile has not been read yet, so their silence says nothing.
void Coordinator::notice_stall(TimePoint now) {
    const Duration since = now - std::exchange(last_tick_, now);
    const Duration most = options_.limits.timeouts.tick_max;
    if (since <= most || since == now.time_since_epoch()) return;
    ARTEL_COVERED(environment_, "the coordinator stood still");
    membership_.forgive(since - most);
    last_step_progress_ += since - most;
}

/// Queued requests wait for service to return, but a client must not wait for ever.
void Coordinator::check_queue(TimePoint now) {
    const Duration most = options_.limits.timeouts.queue_unserved;
    if (state_ == ServiceState::Serving || requests_.queued() == 0) return;
    if (now - unserved_since_ < most) return;
    ARTEL_COVERED(environment_, "queued requests waited too long for service");
    requests_.fail_queued({FailureKind::WorkerLost,
                           fmt::format("not served for {:.0f} s: {}", seconds(most), message_),
                           kRetryAfterLoss});
}

// ---- members ----

void Coordinator::on_worker_report(NodeId from, protocol::WorkerReport report) {
    const TimePoint now = environment_.clock.now();
    const Epoch obeyed = report.epoch_obeyed;
    const Member* known = membership_.find(from);
    const bool is_same_process = known != nullptr && known->report.process == report.process;
    if (protocol::node_id(report.name) != from ||
        !membership_.on_report(from, std::move(report), now)) {
        environment_.observer.note(Severity::Warning,
                                   "refused a worker whose name is not its own "
                                   "or for which there is no room");
        return environment_.transport.disconnect(from);
    }
    if (term_state_ != TermState::None && obeyed.term > epoch_.term)
        return stop(fmt::format("worker {} obeys term {}, this coordinator has {}",
                                membership_.find(from)->report.name, obeyed.term, epoch_.term));
    largest_term_seen_ = std::max(largest_term_seen_, obeyed.term);
    environment_.observer.health_changed();
    if (plan_ && is_in_plan(from)) return rejoin(from, is_same_process);
    if (state_ == ServiceState::WaitingForWorkers) try_plan();
}

/// The link to a worker of the plan has come back, or another process of its name has come.
void Coordinator::rejoin(NodeId node, bool is_same_process) {
    Member& member = *membership_.find(node);
    const protocol::HeldStage& held = member.report.held;
    const bool is_same = held.epoch == epoch_;
    const bool is_loading = state_ == ServiceState::Loading;
    // Neighbours may still be linked to an earlier process of its name, at another address.
    if (!is_same_process || (!is_loading && !(is_same && held.is_ready))) {
        ARTEL_COVERED(environment_, "a worker comes back without its state");
        end_epoch(fmt::format("worker {} was started again", member.report.name));
        return try_plan();
    }
    if (is_loading) {
        ARTEL_COVERED(environment_, "a worker reconnects while loading");
        member.last_load_progress = environment_.clock.now();
        member.is_ready = is_same && held.is_ready;
        if (!is_same) environment_.transport.send(node, assignment(*stage_of(node)));
        return check_ready();
    }
    ARTEL_COVERED(environment_, "a worker reconnects with its state");
    if (node == first_stage()) resend_steps();
    pump();
}

void Coordinator::on_heartbeat(NodeId from, const protocol::Heartbeat& heartbeat) {
    membership_.find(from)->progress = heartbeat.progress;
}

void Coordinator::on_peer_lost_report(NodeId from, const protocol::PeerLost& report) {
    if (!is_current(report.epoch) || !is_in_plan(from)) return;
    const Member* peer = membership_.find(report.peer);
    end_epoch(fmt::format("worker {} lost its link to {}: {}", membership_.find(from)->report.name,
                          peer == nullptr ? "a neighbour" : peer->report.name, report.reason));
}

void Coordinator::on_drain(NodeId from, const protocol::Drain& drain) {
    give_up_worker(from, unavailable("it leaves: {}", drain.reason));
}

void Coordinator::give_up_worker(NodeId node, Error why) {
    const LostWorker lost{node, membership_.find(node)->report.name, std::move(why)};
    membership_.remove(node);
    lose_worker(lost);
}

void Coordinator::lose_worker(const LostWorker& lost) {
    environment_.observer.note(Severity::Warning, fmt::format("worker {} is lost: {}", lost.name,
                                                              std::string(lost.why.message())));
    environment_.transport.disconnect(lost.node);
    environment_.observer.worker_lost(lost.node, lost.name, lost.why);
    ranges_asked_.erase(lost.node);
    if (!is_in_plan(lost.node)) return environment_.observer.health_changed();
    ARTEL_COVERED(environment_, "a worker of the plan is lost");
    end_epoch(fmt::format("worker {} is lost: {}", lost.name, std::string(lost.why.message())));
}

// ---- requests ----

std::optional<Refusal> Coordinator::submit(RequestId id, Request request,
                                           std::shared_ptr<RequestSink> sink) {
    if (is_draining_) return NotReady{"the server is shutting down", Duration{0}};
    if (state_ != ServiceState::Serving) return NotReady{message_, kRetryAfterLoss};
    auto refusal = requests_.submit(id, std::move(request), std::move(sink),
                                    {plan_->context, options_.model.vocabulary_size},
                                    environment_.clock.now());
    if (!refusal) pump();
    return refusal;
}

void Coordinator::cancel(RequestId id) {
    if (options_.canaries.loses_cancels) return;
    requests_.cancel(id);
    pump();
}

void Coordinator::drain() {
    is_draining_ = true;
    environment_.observer.health_changed();
}

void Coordinator::set_state(ServiceState state, std::string message) {
    state_ = state;
    message_ = std::move(message);
    environment_.observer.note(Severity::Info, message_);
    environment_.observer.health_changed();
}

WorkerHealth Coordinator::worker_health(NodeId node, const Member& member) const {
    WorkerHealth health;
    health.node = node;
    health.name = member.report.name;
    health.is_connected = member.is_connected;
    health.is_ready = member.is_ready;
    health.load_bytes_done = member.load_bytes_done;
    health.load_bytes_total = member.load_bytes_total;
    if (!member.report.devices.empty()) {
        health.memory_bytes = member.report.devices.front().memory_bytes;
        health.arithmetic_class = member.report.devices.front().arithmetic_class;
    }
    const auto index = stage_of(node);
    health.status = !index ? "spare" : member.is_ready ? "ready" : "loading";
    if (!member.is_connected) health.status = "link lost";
    if (!index) return health;
    const PlanStage& stage = plan_->stages[*index];
    health.layers = stage.layers;
    health.has_input = stage.has_input;
    health.has_output = stage.has_output;
    health.weight_bytes = stage.weight_bytes;
    health.state_bytes = stage.state_bytes;
    health.scratch_bytes = stage.scratch_bytes;
    return health;
}

/// What lost workers held, and the memory that is lacking.
void Coordinator::add_missing(Health& health) const {
    for (const PlanStage& stage : last_stages_) {
        if (membership_.find(stage.node) != nullptr) continue;
        health.missing_layers.push_back(stage.layers);
        health.missing_bytes += stage.total_bytes();
    }
    if (!plan_refusal_.empty()) health.missing_bytes = refusal_bytes_;
}

Health Coordinator::health() const {
    Health health;
    health.state =
        is_draining_ && state_ == ServiceState::Serving ? ServiceState::Draining : state_;
    health.epoch = epoch_;
    health.message = message_;
    if (!plan_) add_missing(health);
    health.plan_refusal = plan_refusal_;
    health.requests_queued = requests_.queued();
    health.requests_running = requests_.running();
    health.steps_done = steps_done_;
    if (plan_) {
        health.context = plan_->context;
        health.parallel = plan_->parallel;
        health.decode_tokens_per_second = plan_->decode_tokens_per_second;
    }
    for (const NodeId node : membership_.in_order())
        health.workers.push_back(worker_health(node, *membership_.find(node)));
    return health;
}

}  // namespace artel::cluster
