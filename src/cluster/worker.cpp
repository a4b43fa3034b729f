// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker.hpp"

#include <algorithm>
#include <utility>

#include "cluster/term.hpp"
#include "protocol/hash.hpp"
#include "protocol/limits.hpp"

namespace artel::cluster {

using protocol::AssignStage;
using protocol::Lane;
using protocol::StageRefusal;
using protocol::Step;
using protocol::StepRun;
using protocol::WeightsChunk;

namespace {

constexpr std::uint32_t kRangeAttemptsMax = 4;  // of one range whose bytes arrive damaged
constexpr Duration kNeighbourConnectMax = std::chrono::seconds(10);

}  // namespace

Worker::Worker(WorkerOptions options, Environment environment)
    : options_(std::move(options)), environment_(environment), obeyed_(options_.stored_epoch) {
    options_.report.process = environment_.random.next();
}

Worker::~Worker() = default;

void Worker::start() {
    environment_.transport.connect(options_.coordinator, options_.coordinator_address);
}

void Worker::drain(const std::string& reason) {
    environment_.transport.send(options_.coordinator, protocol::Drain{reason});
}

protocol::WorkerReport Worker::report() const {
    protocol::WorkerReport report = options_.report;
    report.epoch_obeyed = obeyed_;
    report.held = {};
    if (assignment_)
        report.held = {assignment_->epoch, assignment_->layers, assignment_->model,
                       state_ == WorkerState::Ready};
    return report;
}

// ---- links ----

void Worker::on_connected(NodeId peer) {
    Peer& entry = peers_[peer];
    entry.is_connected = true;
    entry.last_heard = environment_.clock.now();
    if (peer == options_.coordinator) {
        environment_.transport.send(peer, report());
        for (const auto& [range, attempts] : ranges_wanted_)
            environment_.transport.send(
                peer, protocol::WeightsRequest{assignment_->epoch, assignment_->model, range});
    }
    resend_to(peer);
    announce_if_ready();
}

void Worker::on_peer_lost(NodeId peer, const std::string& reason) {
    const auto found = peers_.find(peer);
    if (found == peers_.end()) return;
    found->second.is_connected = false;
    found->second.link_lost = environment_.clock.now();
    environment_.observer.note(Severity::Debug, "link lost: " + reason);
}

bool Worker::is_neighbour(NodeId peer) const {
    return assignment_ && (peer == assignment_->next || peer == assignment_->previous);
}

bool Worker::is_linked(NodeId peer) const {
    const auto found = peers_.find(peer);
    return found != peers_.end() && found->second.is_connected;
}

void Worker::check_peers(TimePoint now) {
    for (auto it = peers_.begin(); it != peers_.end();) {
        const NodeId node = it->first;
        Peer& peer = it->second;
        const bool is_gone =
            !peer.is_connected && now - peer.link_lost >= options_.timeouts.reconnect_grace;
        const bool is_silent = now - peer.last_heard >= options_.timeouts.heartbeat_lost;
        if (node == options_.coordinator && (is_gone || is_silent)) {
            lose_coordinator(is_gone ? "its link closed" : "it is silent");
            return;
        }
        if (is_neighbour(node) && (is_gone || (peer.is_connected && is_silent)))
            report_lost(node, peer, is_gone ? "the link closed" : "the link is silent");
        if (is_neighbour(node) && peer.is_connected && is_silent) renew_link(node, peer, now);
        if (is_gone && !is_neighbour(node))
            it = peers_.erase(it);
        else
            ++it;
    }
    if (!is_loaded_ || !assignment_ || is_last_stage()) return;
    // Only while no link ever came up; a link that broke is an entry of peers_.
    if (peers_.contains(assignment_->next) || has_reported_unreachable_ ||
        now - loaded_at_ < kNeighbourConnectMax)
        return;
    has_reported_unreachable_ = true;
    environment_.transport.send(
        options_.coordinator,
        protocol::PeerLost{assignment_->epoch, assignment_->next,
                           "cannot reach it at " + assignment_->next_address});
}

/// A silent link may be half-open: the peer restarted and never heard of it. Only a new one helps.
void Worker::renew_link(NodeId node, Peer& peer, TimePoint now) {
    ARTEL_COVERED(environment_, "worker renews a silent link");
    peer.is_connected = false;
    peer.link_lost = now;
    environment_.transport.disconnect(node);
    if (node == assignment_->next) environment_.transport.connect(node, assignment_->next_address);
}

void Worker::report_lost(NodeId node, Peer& peer, const std::string& reason) {
    if (peer.was_reported) return;
    peer.was_reported = true;
    environment_.transport.send(options_.coordinator,
                                protocol::PeerLost{assignment_->epoch, node, reason});
}

void Worker::lose_coordinator(const std::string& reason) {
    environment_.observer.note(Severity::Warning,
                               "the coordinator is lost (" + reason + "); waiting for it");
    ARTEL_COVERED(environment_, "worker loses the coordinator");
    peers_.erase(options_.coordinator);
    forget_steps();
    leave_stage();
    environment_.transport.disconnect(options_.coordinator);
    environment_.transport.connect(options_.coordinator, options_.coordinator_address);
}

/// Weights stay where Storage has them; the next assignment finds them there.
void Worker::leave_stage() {
    if (assignment_ && !is_last_stage()) environment_.transport.disconnect(assignment_->next);
    if (assignment_ && !is_last_stage()) peers_.erase(assignment_->next);
    assignment_.reset();
    ranges_wanted_.clear();
    is_loaded_ = false;
    state_ = WorkerState::Idle;
}

// ---- messages ----

void Worker::on_message(NodeId from, Message message) {
    if (const auto peer = peers_.find(from); peer != peers_.end())
        peer->second.last_heard = environment_.clock.now();
    if (auto* step = std::get_if<Step>(&message)) return on_step(from, std::move(*step));
    if (std::holds_alternative<protocol::Heartbeat>(message)) return;
    if (from != options_.coordinator) {
        environment_.observer.note(Severity::Warning, fmt::format("ignored a {} that is not for "
                                                                  "a worker to send",
                                                                  name_of(message)));
        return;
    }
    if (auto* assignment = std::get_if<AssignStage>(&message))
        return on_assign_stage(std::move(*assignment));
    if (auto* chunk = std::get_if<WeightsChunk>(&message))
        return on_weights_chunk(std::move(*chunk));
    if (const auto* unload = std::get_if<protocol::UnloadStage>(&message))
        return on_unload_stage(*unload);
    if (std::holds_alternative<protocol::Drain>(message)) return;  // only an answer to ours
    environment_.observer.note(Severity::Warning,
                               fmt::format("ignored a {}: not for workers", name_of(message)));
}

void Worker::on_assign_stage(AssignStage assignment) {
    const Epoch epoch = assignment.epoch;
    if (epoch.term < obeyed_.term) {
        ARTEL_COVERED(environment_, "worker refuses an old term");
        return refuse(epoch, StageRefusal::OldEpoch,
                      fmt::format("this worker obeys term {}, the assignment has {}", obeyed_.term,
                                  epoch.term));
    }
    if (epoch < obeyed_) return;  // overtaken by a newer plan of the same coordinator
    if (assignment_ && assignment_->epoch == epoch) return announce_if_ready();  // a repeat
    if (Error error = check_assignment(assignment); !error.ok())
        return refuse(epoch, StageRefusal::BadAssignment, std::string(error.message()));
    forget_steps();
    if (assignment_ && assignment_->next != assignment.next) leave_stage();
    for (auto& [node, peer] : peers_) peer.was_reported = false;
    has_reported_unreachable_ = false;
    const bool is_new_term = epoch.term != obeyed_.term;
    assignment_ = std::move(assignment);
    ranges_wanted_.clear();
    is_loaded_ = false;
    if (!is_new_term) {
        obeyed_ = epoch;
        return begin_load();
    }
    state_ = WorkerState::StoringEpoch;
    environment_.storage.put(kWorkerEpochKey, write_epoch_record(epoch));
}

void Worker::on_record_stored(const RecordStored& stored) {
    if (state_ != WorkerState::StoringEpoch || stored.key != kWorkerEpochKey) return;
    if (!stored.error.ok()) {
        const Epoch epoch = assignment_->epoch;
        leave_stage();
        return refuse(
            epoch, StageRefusal::LoadFailed,
            fmt::format("cannot store the epoch: {}", std::string(stored.error.message())));
    }
    obeyed_ = assignment_->epoch;
    begin_load();
}

void Worker::begin_load() {
    state_ = WorkerState::Loading;
    environment_.storage.load(*assignment_);
    if (!is_last_stage())
        environment_.transport.connect(assignment_->next, assignment_->next_address);
}

void Worker::announce_if_ready() {
    if (!is_loaded_ || !assignment_) return;
    if (!is_last_stage() && !is_linked(assignment_->next)) return;
    if (state_ == WorkerState::Loading) tables_ = StageTables(*assignment_);
    state_ = WorkerState::Ready;
    environment_.transport.send(options_.coordinator, protocol::StageReady{assignment_->epoch});
}

void Worker::refuse(const Epoch& epoch, StageRefusal reason, std::string message) {
    environment_.transport.send(
        options_.coordinator,
        protocol::StageRefused{epoch, reason, std::move(message), 0, 0, obeyed_});
}

void Worker::on_unload_stage(const protocol::UnloadStage& unload) {
    if (unload.epoch < obeyed_) return;
    forget_steps();
    leave_stage();
    environment_.storage.unload();
}

// ---- loading ----

void Worker::on_storage(StorageEvent event) {
    if (const auto* stored = std::get_if<RecordStored>(&event)) return on_record_stored(*stored);
    if (!assignment_) return;
    const Epoch epoch = assignment_->epoch;
    if (const auto* done = std::get_if<LoadAdvanced>(&event); done && done->epoch == epoch)
        environment_.transport.send(
            options_.coordinator,
            protocol::LoadProgress{epoch, done->bytes_done, done->bytes_total});
    if (const auto* done = std::get_if<LoadFinished>(&event); done && done->epoch == epoch) {
        is_loaded_ = true;
        loaded_at_ = environment_.clock.now();
        ranges_wanted_.clear();
        announce_if_ready();
    }
    if (auto* failed = std::get_if<LoadFailed>(&event); failed && failed->epoch == epoch)
        on_load_failed(std::move(*failed));
    if (const auto* wanted = std::get_if<RangeWanted>(&event); wanted && wanted->epoch == epoch)
        on_range_wanted(wanted->range);
}

void Worker::on_load_failed(LoadFailed failed) {
    leave_stage();
    environment_.transport.send(
        options_.coordinator,
        protocol::StageRefused{failed.epoch, failed.reason, std::move(failed.message),
                               failed.bytes_needed, failed.bytes_available, obeyed_});
}

void Worker::on_range_wanted(const protocol::WeightsRange& range) {
    ranges_wanted_[range] = 1;
    environment_.transport.send(
        options_.coordinator,
        protocol::WeightsRequest{assignment_->epoch, assignment_->model, range});
}

void Worker::on_weights_chunk(WeightsChunk chunk) {
    if (!assignment_ || chunk.epoch != assignment_->epoch) return;
    const auto wanted = ranges_wanted_.find(chunk.range);
    if (wanted == ranges_wanted_.end()) return;  // a repeat
    const std::uint64_t left = chunk.bytes_total - std::min(chunk.bytes_total, chunk.range.offset);
    const bool is_whole = chunk.payload.size() == std::min<std::uint64_t>(chunk.range.bytes, left);
    const bool is_sound = is_whole && protocol::hash_bytes(chunk.payload.span()) == chunk.hash;
    if (chunk.error.empty() && !is_sound) {
        ARTEL_COVERED(environment_, "weights arrive damaged");
        if (wanted->second < kRangeAttemptsMax) {
            ++wanted->second;
            environment_.transport.send(
                options_.coordinator,
                protocol::WeightsRequest{chunk.epoch, assignment_->model, chunk.range});
            return;
        }
        chunk.error = fmt::format("arrived damaged {} times", kRangeAttemptsMax);
    }
    ranges_wanted_.erase(wanted);
    environment_.storage.supply(std::move(chunk));
}

// ---- steps ----

NodeId Worker::step_source() const {
    return is_first_stage() ? options_.coordinator : assignment_->previous;
}

void Worker::on_step(NodeId from, Step step) {
    const bool is_current = assignment_ && step.epoch == assignment_->epoch;
    if (!assignment_ || (!is_current && !options_.canaries.skips_epoch_check)) {
        ARTEL_COVERED(environment_, "a step of another epoch is ignored");
        return;
    }
    if (from != step_source() || state_ != WorkerState::Ready) {
        environment_.observer.note(Severity::Warning,
                                   "ignored a step from the wrong node or "
                                   "before the stage was ready");
        return;
    }
    if (step.number <= returned_through_ || seen_.contains(step.number)) {
        ARTEL_COVERED(environment_, "a repeated step is ignored");
        return;
    }
    if (waiting_decode_.size() + waiting_prefill_.size() >= kStepsInFlightMax ||
        seen_.size() >= kStepsRememberedMax) {  // a sender that never lets go of old ones
        environment_.observer.note(Severity::Warning, "ignored a step: too many are unfinished");
        return;
    }
    if (step.returned_through >= step.number)
        return fail_step(step.number, StageRefusal::BadStep, "it says that it has returned");
    forget_returned(step.returned_through);
    seen_.insert(step.number);
    auto& waiting = step.lane == Lane::Prefill ? waiting_prefill_ : waiting_decode_;
    waiting.emplace(step.number, std::move(step));
    run_next_step();
}

/// Decode steps first, so that running answers keep their pace; but a prompt that waits gets its
/// turn, or a pipe full of decode steps would starve it.
std::map<StepNumber, Step>& Worker::next_lane() {
    const bool is_prefill_due = decode_turns_ >= kDecodeTurnsMax && !waiting_prefill_.empty();
    if (waiting_decode_.empty() || is_prefill_due) {
        decode_turns_ = 0;
        return waiting_prefill_;
    }
    decode_turns_ = waiting_prefill_.empty() ? 0 : decode_turns_ + 1;
    return waiting_decode_;
}

void Worker::run_next_step() {
    while (!running_ && state_ == WorkerState::Ready) {
        auto& waiting = next_lane();
        if (waiting.empty()) return;
        Step step = std::move(waiting.begin()->second);
        waiting.erase(waiting.begin());
        if (Error error = tables_.apply(step); !error.ok()) {
            fail_step(step.number, StageRefusal::BadStep, std::string(error.message()));
            continue;
        }
        running_ = step;
        running_->activations = {};
        environment_.executor.submit(std::move(step));
    }
}

void Worker::on_step_done(StepOutcome outcome) {
    if (!running_ || outcome.epoch != running_->epoch || outcome.number != running_->number) return;
    const Step step = std::move(*running_);
    running_.reset();
    if (!outcome.error.ok()) {
        const bool is_step_at_fault = outcome.error.code() == ErrorCode::kInvalidArgument ||
                                      outcome.error.code() == ErrorCode::kDataLoss;
        fail_step(step.number,
                  is_step_at_fault ? StageRefusal::BadStep : StageRefusal::DeviceFailed,
                  std::string(outcome.error.message()));
    } else if (auto why = check_outcome(step, outcome)) {
        fail_step(step.number, StageRefusal::DeviceFailed, *why);
    } else if (is_last_stage()) {
        answer(step, std::move(outcome));
    } else {
        forward(step, std::move(outcome));
    }
    run_next_step();
}

std::uint64_t Worker::logits_rows(const Step& step) {
    std::uint64_t rows = 0;
    for (const StepRun& run : step.runs)
        if (run.wants_logits) rows += run.tokens.size();
    return rows;
}

std::optional<std::string> Worker::check_outcome(const Step& step,
                                                 const StepOutcome& outcome) const {
    if (!is_last_stage()) {
        const std::uint64_t bytes = row_count(step) * assignment_->row_bytes;
        if (outcome.activations.size() == bytes) return std::nullopt;
        return fmt::format("the executor gave {} bytes of activations, expected {}",
                           outcome.activations.size(), bytes);
    }
    const auto sampling = std::count_if(step.runs.begin(), step.runs.end(),
                                        [](const StepRun& run) { return run.samples; });
    const std::uint64_t bytes = logits_rows(step) * assignment_->vocabulary_size * 4;
    if (outcome.tokens.size() == static_cast<std::size_t>(sampling) &&
        outcome.logits.size() == bytes)
        return std::nullopt;
    return fmt::format("the executor gave {} tokens and {} bytes of logits, expected {} and {}",
                       outcome.tokens.size(), outcome.logits.size(), sampling, bytes);
}

void Worker::forward(const Step& step, StepOutcome outcome) {
    Step onward = step;
    onward.activations = std::move(outcome.activations);
    keep_and_send(step.number, assignment_->next, std::move(onward));
}

void Worker::answer(const Step& step, StepOutcome outcome) {
    const std::uint64_t row_bytes = std::uint64_t{assignment_->vocabulary_size} * 4;
    const std::uint64_t rows = logits_rows(step);
    const std::uint64_t rows_each =
        std::max<std::uint64_t>(1, protocol::kChunkBytesMax / row_bytes);
    for (std::uint64_t first = 0; first < rows; first += rows_each) {
        const std::uint64_t count = std::min(rows_each, rows - first);
        keep_and_send(step.number, options_.coordinator,
                      protocol::StepLogits{
                          step.epoch, step.number, step.lane, static_cast<std::uint32_t>(first),
                          static_cast<std::uint32_t>(count),
                          outcome.logits.slice(first * row_bytes, count * row_bytes)});
    }
    keep_and_send(
        step.number, options_.coordinator,
        protocol::StepResult{step.epoch, step.number, step.lane, std::move(outcome.tokens)});
}

void Worker::fail_step(StepNumber number, StageRefusal reason, std::string message) {
    ARTEL_COVERED(environment_, "a step fails");
    seen_.insert(number);
    keep_and_send(number, options_.coordinator,
                  protocol::StepFailed{assignment_->epoch, number, reason, std::move(message)});
}

void Worker::keep_and_send(StepNumber number, NodeId to, Message message) {
    Kept& kept = kept_[number];
    kept.to = to;
    kept.messages.push_back(message);
    // While the link is down nothing is sent, lest a later step arrives before those sent again.
    if (is_linked(to)) environment_.transport.send(to, std::move(message));
}

void Worker::resend_to(NodeId peer) {
    if (options_.canaries.forgets_resend) return;
    for (const auto& [number, kept] : kept_) {
        if (kept.to != peer) continue;
        ARTEL_COVERED(environment_, "worker sends again after a reconnect");
        for (const Message& message : kept.messages) environment_.transport.send(peer, message);
    }
}

void Worker::forget_returned(StepNumber returned_through) {
    if (returned_through <= returned_through_) return;
    returned_through_ = returned_through;
    kept_.erase(kept_.begin(), kept_.upper_bound(returned_through));
    seen_.erase(seen_.begin(), seen_.upper_bound(returned_through));
}

void Worker::forget_steps() {
    if (assignment_) environment_.executor.cancel(assignment_->epoch);
    waiting_decode_.clear();
    waiting_prefill_.clear();
    running_.reset();
    seen_.clear();
    kept_.clear();
    returned_through_ = {};
    tables_ = {};
}

// ---- time ----

void Worker::send_heartbeats(TimePoint now) {
    if (now - last_heartbeat_ < options_.timeouts.heartbeat_every) return;
    last_heartbeat_ = now;
    const Epoch epoch = assignment_ ? assignment_->epoch : Epoch{};
    const protocol::Heartbeat heartbeat{epoch, environment_.executor.progress()};
    for (const auto& [node, peer] : peers_)
        if (peer.is_connected && (node == options_.coordinator || is_neighbour(node)))
            environment_.transport.send(node, heartbeat);
}

/// As the coordinator's: what came while we stood still has not been read yet.
void Worker::notice_stall(TimePoint now) {
    const Duration since = now - std::exchange(last_tick_, now);
    const Duration most = options_.timeouts.tick_max;
    if (since <= most || since == now.time_since_epoch()) return;
    ARTEL_COVERED(environment_, "a worker stood still");
    for (auto& [node, peer] : peers_) {
        peer.last_heard += since - most;
        peer.link_lost += since - most;
    }
    loaded_at_ += since - most;
}

void Worker::tick() {
    const TimePoint now = environment_.clock.now();
    notice_stall(now);
    send_heartbeats(now);
    check_peers(now);
}

}  // namespace artel::cluster
