// SPDX-License-Identifier: Apache-2.0
// Coordinator, third part: steps out, results back.
#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "cluster/coordinator.hpp"

namespace artel::cluster {

using protocol::Lane;
using protocol::SampledToken;
using protocol::StageRefusal;
using protocol::Step;
using protocol::StepRun;

namespace {

// Of one step's sampling setups, so that its body fits a frame; the largest single one is less.
constexpr std::uint64_t kSetupBytesMax = 640U << 10U;

}  // namespace

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
    std::uint64_t setup_bytes = 0;
    for (const ScheduledRun& row : scheduled.runs) {
        setup_bytes += requests_.setup_bytes(row.sequence, row.rows);
        if (setup_bytes > kSetupBytesMax && !step.runs.empty()) break;  // the next step takes it
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

}  // namespace artel::cluster
