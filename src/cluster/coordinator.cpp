// SPDX-License-Identifier: Apache-2.0
#include "cluster/coordinator.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "cluster/term.hpp"
#include "protocol/limits.hpp"

namespace artel::cluster {

using protocol::AssignStage;
using protocol::Lane;
using protocol::SampledToken;
using protocol::StageRefusal;
using protocol::Step;
using protocol::StepRun;

namespace {

// The tables start empty in every epoch, so a fixed id does; requests count theirs from 1.
constexpr SequenceId kWarmUpSequence{~0ULL};
// What clients are told when a worker is lost: about the time of a restart from a warm disk.
constexpr Duration kRetryAfterLoss = std::chrono::seconds(5);

Limits with_plan(Limits limits, const PlanRequest& plan) {
    limits.sequences = std::clamp(plan.parallel, 1U, kSequencesMax);
    limits.chunk_rows = std::clamp(plan.chunk_rows, 1U, protocol::kRowsMax);
    return limits;
}

std::uint32_t rows_max(const Limits& limits) {
    return std::max(limits.chunk_rows, std::min(limits.decode_rows, limits.sequences));
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
    send_heartbeats(now);
    for (const LostWorker& lost : membership_.expire(now)) lose_worker(lost);
    requests_.expire(now);
    check_load_progress(now);
    check_step_progress(now);
    if (state_ == ServiceState::WaitingForWorkers) try_plan();
    pump();
}

// ---- members ----

void Coordinator::on_worker_report(NodeId from, protocol::WorkerReport report) {
    const TimePoint now = environment_.clock.now();
    const Epoch obeyed = report.epoch_obeyed;
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
    if (plan_ && is_in_plan(from)) return rejoin(from);
    if (state_ == ServiceState::WaitingForWorkers) try_plan();
}

/// The link to a worker of the plan has come back, or another process of its name has come.
void Coordinator::rejoin(NodeId node) {
    Member& member = *membership_.find(node);
    const protocol::HeldStage& held = member.report.held;
    const bool is_same = held.epoch == epoch_;
    if (state_ == ServiceState::Loading) {
        ARTEL_COVERED(environment_, "a worker reconnects while loading");
        member.last_load_progress = environment_.clock.now();
        member.is_ready = is_same && held.is_ready;
        if (!is_same) environment_.transport.send(node, assignment(*stage_of(node)));
        return check_ready();
    }
    if (!is_same || !held.is_ready) {
        ARTEL_COVERED(environment_, "a worker comes back without its state");
        end_epoch(fmt::format("worker {} was started again", member.report.name));
        return try_plan();
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
    if (const auto held = last_stages_.find(lost.node); held != last_stages_.end()) {
        missing_layers_ = held->second.layers;
        missing_bytes_ = held->second.total_bytes();
    }
    if (!is_in_plan(lost.node)) return environment_.observer.health_changed();
    ARTEL_COVERED(environment_, "a worker of the plan is lost");
    end_epoch(fmt::format("worker {} is lost: {}", lost.name, std::string(lost.why.message())));
}

// ---- terms and plans ----

void Coordinator::choose_term() {
    term_state_ = TermState::Storing;
    epoch_ = {largest_term_seen_ + 1, 0};
    environment_.storage.put(kCoordinatorTermKey, write_epoch_record(epoch_));
}

void Coordinator::on_record_stored(const RecordStored& stored) {
    if (term_state_ != TermState::Storing || stored.key != kCoordinatorTermKey) return;
    if (!stored.error.ok()) {
        term_state_ = TermState::None;
        retry_plan_at_ = environment_.clock.now() + options_.limits.timeouts.retry_plan;
        return set_state(
            ServiceState::WaitingForWorkers,
            fmt::format("cannot store the term: {}", std::string(stored.error.message())));
    }
    term_state_ = TermState::Stored;
    try_plan();
}

std::vector<WorkerProfile> Coordinator::usable_workers() const {
    std::vector<WorkerProfile> workers;
    for (const NodeId node : membership_.in_order()) {
        const Member& member = *membership_.find(node);
        if (member.is_connected) workers.push_back(worker_profile(member.report, options_.model));
    }
    return workers;
}

void Coordinator::try_plan() {
    if (state_ != ServiceState::WaitingForWorkers || environment_.clock.now() < retry_plan_at_)
        return;
    if (!membership_.is_complete()) {
        const std::string missing = membership_.missing();
        const std::string why = why_ended_.empty() ? missing : why_ended_ + "; " + missing;
        if (why != message_) set_state(state_, why);
        return;
    }
    if (term_state_ == TermState::None) return choose_term();
    if (term_state_ == TermState::Storing) return;
    PlanOutcome outcome = make_plan(options_.model, usable_workers(), options_.plan);
    if (auto* plan = std::get_if<Plan>(&outcome)) return start_epoch(std::move(*plan));
    const PlanRefusal& refusal = std::get<PlanRefusal>(outcome);
    ARTEL_COVERED(environment_, "the model does not fit");
    missing_bytes_ = refusal.missing_bytes;
    retry_plan_at_ = environment_.clock.now() + options_.limits.timeouts.retry_plan;
    if (message_ != refusal.message) set_state(state_, refusal.message);
}

void Coordinator::start_epoch(Plan plan) {
    const TimePoint now = environment_.clock.now();
    ++epoch_.number;
    plan_ = std::move(plan);
    missing_bytes_ = 0;
    missing_layers_ = {};
    std::vector<PageTables::Group> groups;
    for (std::size_t g = 0; g < options_.model.groups.size(); ++g)
        groups.push_back({options_.model.groups[g], plan_->page_counts[g]});
    pages_ = PageTables(std::move(groups), options_.canaries.frees_pages_twice);
    last_step_ = 0;
    for (auto& [node, member] : membership_.members()) {
        member.is_ready = false;
        member.load_bytes_done = member.load_bytes_total = 0;
        member.last_load_progress = now;
    }
    last_stages_.clear();
    for (std::size_t stage = 0; stage < plan_->stages.size(); ++stage) {
        last_stages_.emplace(plan_->stages[stage].node, plan_->stages[stage]);
        environment_.transport.send(plan_->stages[stage].node, assignment(stage));
    }
    set_state(ServiceState::Loading, "loading");
}

AssignStage Coordinator::assignment(std::size_t index) const {
    const PlanStage& stage = plan_->stages[index];
    const bool is_last = index + 1 == plan_->stages.size();
    AssignStage assign;
    assign.epoch = epoch_;
    assign.model = options_.model.digest;
    assign.model_name = options_.model.name;
    assign.model_bytes = options_.model.file_bytes;
    assign.layers = stage.layers;
    if (options_.canaries.counts_a_layer_twice && index == 0 && !is_last) ++assign.layers.count;
    assign.layer_count = static_cast<std::uint32_t>(options_.model.layers.size());
    assign.has_input = stage.has_input;
    assign.has_output = stage.has_output;
    assign.vocabulary_size = options_.model.vocabulary_size;
    assign.context = plan_->context;
    assign.rows_max = rows_max(options_.limits);
    assign.sequences_max = plan_->parallel;
    assign.row_bytes = options_.model.row_bytes;
    assign.state_type = options_.model.state_type;
    for (std::size_t g = 0; g < options_.model.groups.size(); ++g)
        assign.groups.push_back({options_.model.groups[g].kind, options_.model.groups[g].window,
                                 plan_->page_counts[g]});
    assign.memory_bytes = stage.total_bytes();
    if (index > 0) assign.previous = plan_->stages[index - 1].node;
    if (!is_last) {
        assign.next = plan_->stages[index + 1].node;
        const Member* next = membership_.find(assign.next);
        if (next != nullptr) assign.next_address = next->report.listen_address;
    }
    return assign;
}

bool Coordinator::is_in_plan(NodeId node) const {
    return stage_of(node).has_value();
}

std::optional<std::size_t> Coordinator::stage_of(NodeId node) const {
    for (std::size_t stage = 0; plan_ && stage < plan_->stages.size(); ++stage)
        if (plan_->stages[stage].node == node) return stage;
    return std::nullopt;
}

void Coordinator::end_epoch(const std::string& why, FailureKind kind) {
    environment_.observer.note(
        Severity::Warning, fmt::format("epoch {}.{} ends: {}", epoch_.term, epoch_.number, why));
    plan_.reset();
    in_flight_.clear();
    drops_.clear();
    ranges_asked_.clear();
    pages_ = PageTables();
    requests_.fail_all({kind, why, kRetryAfterLoss});
    why_ended_ = why;
    for (auto& [node, member] : membership_.members()) member.is_ready = false;
    set_state(ServiceState::WaitingForWorkers, why);
}

void Coordinator::stop(const std::string& why) {
    ARTEL_COVERED(environment_, "a coordinator is refused by newer terms");
    end_epoch(why +
              "; another coordinator has started since. Stop one of them, or start this one "
              "again");
    set_state(ServiceState::Stopped, why_ended_);
}

// ---- loading ----

void Coordinator::on_load_progress(NodeId from, const protocol::LoadProgress& progress) {
    if (!is_current(progress.epoch)) return;
    Member& member = *membership_.find(from);
    member.load_bytes_done = progress.bytes_done;
    member.load_bytes_total = progress.bytes_total;
    member.last_load_progress = environment_.clock.now();
    environment_.observer.health_changed();
}

void Coordinator::on_stage_ready(NodeId from, const protocol::StageReady& ready) {
    if (!is_current(ready.epoch) || !is_in_plan(from)) return;
    membership_.find(from)->is_ready = true;
    if (state_ == ServiceState::Loading) check_ready();
}

void Coordinator::check_ready() {
    for (const PlanStage& stage : plan_->stages) {
        const Member* member = membership_.find(stage.node);
        if (member == nullptr || !member->is_ready) return environment_.observer.health_changed();
    }
    send_warm_up();
}

void Coordinator::on_stage_refused(NodeId from, const protocol::StageRefused& refused) {
    if (refused.reason == StageRefusal::OldEpoch && refused.epoch_obeyed.term > epoch_.term)
        return stop(refused.message);
    if (!is_current(refused.epoch) || !is_in_plan(from)) return;
    Member& member = *membership_.find(from);
    if (refused.reason == StageRefusal::NotEnoughMemory && !member.report.devices.empty()) {
        ARTEL_COVERED(environment_, "a worker has less memory than it said");
        // Always less than before, so planning again comes to an end.
        std::uint64_t& memory = member.report.devices.front().memory_bytes;
        memory = std::min(refused.bytes_available, memory - memory / 16 - (memory > 0 ? 1 : 0));
    }
    end_epoch(
        fmt::format("worker {} cannot hold its stage: {}", member.report.name, refused.message));
    retry_plan_at_ = environment_.clock.now() + options_.limits.timeouts.retry_plan;
}

void Coordinator::on_weights_request(NodeId from, const protocol::WeightsRequest& request) {
    if (!is_current(request.epoch) || !is_in_plan(from)) return;
    membership_.find(from)->last_load_progress = environment_.clock.now();
    std::uint32_t& asked = ranges_asked_[from];
    std::string error;
    if (request.model != options_.model.digest) error = "another model is served";
    if (asked >= 2 * kWeightRangesMax) error = "too many requests for weights wait already";
    if (error.empty()) {
        ++asked;
        return environment_.storage.read(from, request);
    }
    protocol::WeightsChunk chunk;
    chunk.epoch = request.epoch;
    chunk.model = request.model;
    chunk.range = request.range;
    chunk.error = error;
    environment_.transport.send(from, std::move(chunk));
}

void Coordinator::check_load_progress(TimePoint now) {
    if (state_ != ServiceState::Loading) return;
    for (const PlanStage& stage : plan_->stages) {
        const Member* member = membership_.find(stage.node);
        if (member == nullptr || member->is_ready) continue;
        if (now - member->last_load_progress < options_.limits.timeouts.load_progress) continue;
        return give_up_worker(stage.node,
                              deadline_exceeded("no progress in loading for {:.0f} s",
                                                seconds(options_.limits.timeouts.load_progress)));
    }
}

void Coordinator::send_warm_up() {
    Step step;
    step.lane = Lane::Prefill;
    StepRun run;
    run.sequence = kWarmUpSequence;
    run.tokens = {0};
    run.samples = true;
    run.sampling.emplace().parameters.temperature = 0;
    step.runs.push_back(std::move(run));
    pages_.extend(kWarmUpSequence, 0, 1, step.page_changes);
    set_state(ServiceState::WarmingUp, "warming up");
    send_step(std::move(step));
}

void Coordinator::on_warm_up_done() {
    pages_.drop(kWarmUpSequence);
    drops_.push_back(kWarmUpSequence);
    why_ended_.clear();
    set_state(ServiceState::Serving, "serving");
}

// ---- steps ----

void Coordinator::pump() {
    if (state_ != ServiceState::Serving) return;
    drop_ended();
    requests_.admit();
    while (send_next_step()) {
    }
}

bool Coordinator::send_next_step() {
    InFlightView in_flight;
    for (const auto& [number, flight] : in_flight_)
        ++(flight.step.lane == Lane::Decode ? in_flight.decode_steps : in_flight.prefill_steps);
    const ScheduledStep scheduled =
        next_step(requests_.views(), in_flight,
                  {static_cast<std::uint32_t>(plan_->stages.size()), options_.limits.chunk_rows,
                   options_.limits.decode_rows});
    if (scheduled.runs.empty()) return false;
    send_step(make_step(scheduled));
    return true;
}

Step Coordinator::make_step(const ScheduledStep& scheduled) {
    Step step;
    step.lane = scheduled.lane;
    step.drops = std::exchange(drops_, {});
    for (const ScheduledRun& row : scheduled.runs) {
        StepRun run = requests_.send_run(row.sequence, row.rows, StepNumber{last_step_ + 1});
        const bool has_pages = pages_.extend(run.sequence, run.first_position,
                                             run.first_position + row.rows, step.page_changes);
        ARTEL_CHECK(has_pages, "the plan keeps pages for every sequence it admits");
        step.runs.push_back(std::move(run));
    }
    return step;
}

void Coordinator::send_step(Step step) {
    step.epoch = epoch_;
    step.returned_through = returned_through();
    step.number = StepNumber{++last_step_};
    const TimePoint now = environment_.clock.now();
    if (in_flight_.empty()) last_step_progress_ = now;
    InFlight flight{step, now, 0, 0};
    for (const StepRun& run : step.runs) {
        pages_.step_sent(run.sequence, step.number);
        if (run.wants_logits)
            flight.logits_rows_wanted += static_cast<std::uint32_t>(run.tokens.size());
    }
    in_flight_.emplace(step.number, std::move(flight));
    // Without a link it goes when the worker reports again, so that steps arrive in order.
    const Member* first = membership_.find(first_stage());
    if (first != nullptr && first->is_connected)
        environment_.transport.send(first_stage(), std::move(step));
}

void Coordinator::resend_steps() {
    if (options_.canaries.forgets_resend) return;
    for (const auto& [number, flight] : in_flight_) {
        ARTEL_COVERED(environment_, "coordinator sends steps again after a reconnect");
        environment_.transport.send(first_stage(), flight.step);
    }
}

/// Every step up to this one has come back.
StepNumber Coordinator::returned_through() const {
    return in_flight_.empty() ? StepNumber{last_step_}
                              : StepNumber{in_flight_.begin()->first.value - 1};
}

void Coordinator::on_step_logits(NodeId from, protocol::StepLogits logits) {
    if (!is_current(logits.epoch) || from != last_stage()) return;
    const auto found = in_flight_.find(logits.number);
    if (found == in_flight_.end()) return;  // a repeat
    InFlight& flight = found->second;
    const std::uint64_t end = std::uint64_t{logits.first_row} + logits.row_count;
    if (end <= flight.logits_rows) return;  // a repeat
    const std::uint64_t row_bytes = std::uint64_t{options_.model.vocabulary_size} * 4;
    if (logits.first_row != flight.logits_rows || end > flight.logits_rows_wanted ||
        logits.payload.size() != logits.row_count * row_bytes)
        return give_up_worker(from, internal_error("its logits do not fit step {}: rows [{}, {}), "
                                                   "{} bytes",
                                                   logits.number.value, logits.first_row, end,
                                                   logits.payload.size()));
    deliver_logits(flight, logits);
    flight.logits_rows = static_cast<std::uint32_t>(end);
}

void Coordinator::deliver_logits(const InFlight& flight, const protocol::StepLogits& logits) {
    const std::uint64_t row_bytes = std::uint64_t{options_.model.vocabulary_size} * 4;
    const std::uint64_t last = std::uint64_t{logits.first_row} + logits.row_count;
    std::uint64_t run_first = 0;  // of the rows that want logits
    for (const StepRun& run : flight.step.runs) {
        if (!run.wants_logits) continue;
        const std::uint64_t run_end = run_first + run.tokens.size();
        const std::uint64_t begin = std::max<std::uint64_t>(run_first, logits.first_row);
        const std::uint64_t end = std::min(run_end, last);
        if (begin < end)
            requests_.deliver_logits(
                run.sequence, run.first_position + static_cast<std::uint32_t>(begin - run_first),
                static_cast<std::uint32_t>(end - begin),
                logits.payload.slice((begin - logits.first_row) * row_bytes,
                                     (end - begin) * row_bytes));
        run_first = run_end;
    }
}

std::optional<std::string> Coordinator::check_result(const InFlight& flight,
                                                     const protocol::StepResult& result) const {
    if (flight.logits_rows != flight.logits_rows_wanted)
        return fmt::format("{} rows of logits came, {} were wanted", flight.logits_rows,
                           flight.logits_rows_wanted);
    std::size_t next = 0;
    for (const StepRun& run : flight.step.runs) {
        if (!run.samples) continue;
        if (next == result.tokens.size()) return "a token is missing";
        const SampledToken& token = result.tokens[next++];
        if (token.sequence != run.sequence ||
            token.position != run.first_position + run.tokens.size() ||
            token.token >= options_.model.vocabulary_size)
            return fmt::format("token {} at position {} of sequence {} was not asked for",
                               token.token, token.position, token.sequence.value);
    }
    if (next != result.tokens.size()) return "more tokens came than were asked for";
    return std::nullopt;
}

void Coordinator::on_step_result(NodeId from, protocol::StepResult result) {
    if (!is_current(result.epoch) || from != last_stage()) return;
    const auto found = in_flight_.find(result.number);
    if (found == in_flight_.end()) {
        ARTEL_COVERED(environment_, "a repeated result is ignored");
        return;
    }
    if (auto why = check_result(found->second, result))
        return give_up_worker(
            from, internal_error("its result of step {} is wrong: {}", result.number.value, *why));
    finish_step(result.number, result.tokens);
    ++steps_done_;
    if (state_ == ServiceState::WarmingUp) on_warm_up_done();
    pump();
}

void Coordinator::finish_step(StepNumber number, const std::vector<SampledToken>& tokens) {
    const TimePoint now = environment_.clock.now();
    last_step_progress_ = now;
    const Step step = std::move(in_flight_.at(number).step);
    in_flight_.erase(number);
    pages_.step_returned(number);
    auto token = tokens.begin();
    for (const StepRun& run : step.runs) {
        const bool has_token = run.samples && token != tokens.end();
        requests_.run_returned(run, has_token ? &*token : nullptr, now);
        if (has_token) ++token;
    }
}

void Coordinator::on_step_failed(NodeId from, const protocol::StepFailed& failed) {
    if (!is_current(failed.epoch) || !is_in_plan(from)) return;
    const auto found = in_flight_.find(failed.number);
    if (found == in_flight_.end()) return;
    const std::string why =
        fmt::format("worker {}, step {}: {}", membership_.find(from)->report.name,
                    failed.number.value, failed.message);
    if (failed.reason != StageRefusal::BadStep || state_ == ServiceState::WarmingUp) {
        end_epoch(why, FailureKind::StepFailed);
        retry_plan_at_ = environment_.clock.now() + options_.limits.timeouts.retry_plan;
        return;
    }
    ARTEL_COVERED(environment_, "a bad step ends its requests only");
    environment_.observer.note(Severity::Warning, why);
    // No later stage sees this step: it is as good as back, but its drops must go again.
    const Step& step = found->second.step;
    drops_.insert(drops_.end(), step.drops.begin(), step.drops.end());
    for (const StepRun& run : step.runs)
        requests_.fail(run.sequence, {FailureKind::StepFailed, why, Duration{0}});
    finish_step(failed.number, {});
    pump();
}

void Coordinator::drop_ended() {
    for (const SequenceId sequence : requests_.take_ended()) {
        pages_.drop(sequence);
        drops_.push_back(sequence);
    }
}

std::uint64_t Coordinator::progress_sum() const {
    std::uint64_t sum = 0;
    for (const PlanStage& stage : plan_->stages)
        if (const Member* member = membership_.find(stage.node)) sum += member->progress;
    return sum;
}

void Coordinator::check_step_progress(TimePoint now) {
    if (in_flight_.empty()) return;
    const Timeouts& timeouts = options_.limits.timeouts;
    if (const std::uint64_t sum = progress_sum(); sum != progress_sum_) {
        progress_sum_ = sum;
        last_step_progress_ = now;
        return;
    }
    std::uint64_t rows = 0;
    for (const auto& [number, flight] : in_flight_) rows = std::max(rows, row_count(flight.step));
    const std::uint64_t predicted = std::min<std::uint64_t>(
        predicted_step_ns(*plan_, rows), 3'600'000'000'000ULL / timeouts.step_progress_factor);
    const Duration patience =
        std::max(timeouts.step_progress_min,
                 Duration(static_cast<std::int64_t>(predicted * timeouts.step_progress_factor)));
    if (now - last_step_progress_ < patience) return;
    ARTEL_COVERED(environment_, "a step makes no progress");
    end_epoch(fmt::format("step {} made no progress for {:.1f} s", in_flight_.begin()->first.value,
                          seconds(now - last_step_progress_)));
}

void Coordinator::send_heartbeats(TimePoint now) {
    if (now - last_heartbeat_ < options_.limits.timeouts.heartbeat_every) return;
    last_heartbeat_ = now;
    for (const auto& [node, member] : membership_.members())
        if (member.is_connected)
            environment_.transport.send(node, protocol::Heartbeat{epoch_, steps_done_});
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
    return health;
}

Health Coordinator::health() const {
    Health health;
    health.state =
        is_draining_ && state_ == ServiceState::Serving ? ServiceState::Draining : state_;
    health.epoch = epoch_;
    health.message = message_;
    health.missing_layers = missing_layers_;
    health.missing_bytes = missing_bytes_;
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
