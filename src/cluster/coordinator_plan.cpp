// SPDX-License-Identifier: Apache-2.0
// Coordinator, second part: terms, plans and epochs; loading and warm-up.
#include <algorithm>
#include <utility>

#include "cluster/coordinator.hpp"
#include "cluster/term.hpp"
#include "protocol/limits.hpp"

namespace artel::cluster {

using protocol::AssignStage;
using protocol::Lane;
using protocol::StageRefusal;
using protocol::Step;
using protocol::StepRun;

namespace {

// The tables start empty in every epoch, so a fixed id does; requests count theirs from 1.
constexpr SequenceId kWarmUpSequence{~0ULL};

std::uint32_t rows_max(const Limits& limits) {
    return std::max(limits.chunk_rows, std::min(limits.decode_rows, limits.sequences));
}

}  // namespace

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
    even_out_twins(workers);
    return workers;
}

void Coordinator::try_plan() {
    if (state_ != ServiceState::WaitingForWorkers || environment_.clock.now() < retry_plan_at_)
        return;
    if (!membership_.is_complete()) {
        plan_refusal_.clear();
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
    refusal_bytes_ = refusal.missing_bytes;
    plan_refusal_ = refusal.message;
    retry_plan_at_ = environment_.clock.now() + options_.limits.timeouts.retry_plan;
    // Children of this machine are all there are; who joins from elsewhere may yet be joined.
    const bool may_more_join = options_.expected_count > options_.expected_workers.size();
    const std::string message =
        may_more_join ? refusal.message + "; waiting for more or other workers" : refusal.message;
    if (message_ != message) set_state(state_, message);
}

void Coordinator::start_epoch(Plan plan) {
    const TimePoint now = environment_.clock.now();
    ++epoch_.number;
    plan_ = std::move(plan);
    plan_refusal_.clear();
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
    last_stages_ = plan_->stages;
    for (std::size_t stage = 0; stage < plan_->stages.size(); ++stage)
        environment_.transport.send(plan_->stages[stage].node, assignment(stage));
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
    why_ended_ = why;
    if (state_ == ServiceState::Serving) unserved_since_ = environment_.clock.now();
    for (auto& [node, member] : membership_.members()) member.is_ready = false;
    // The state first: who learns that a request failed may ask at once whether we serve.
    set_state(ServiceState::WaitingForWorkers, why);
    requests_.fail_started({kind, why, kRetryAfterLoss});
}

void Coordinator::stop(const std::string& why) {
    ARTEL_COVERED(environment_, "a coordinator is refused by newer terms");
    end_epoch(why +
              "; another coordinator has started since. Stop one of them, or start this one "
              "again");
    set_state(ServiceState::Stopped, why_ended_);
    requests_.fail_queued({FailureKind::ShuttingDown, why_ended_, Duration{0}});
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
    requests_.recheck_queued({plan_->context, options_.model.vocabulary_size});
    set_state(ServiceState::Serving, "serving");
}

}  // namespace artel::cluster
