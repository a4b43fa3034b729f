// SPDX-License-Identifier: Apache-2.0
#include "simulation/hash_executor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace artel::simulation {

using cluster::StepOutcome;
using protocol::kPageTokens;
using protocol::SequenceId;
using protocol::StateKind;

HashExecutor::HashExecutor(EventQueue& queue, const cluster::ModelProfile& model,
                           HashDevice& device, std::function<void(StepOutcome)> on_done,
                           std::function<void(std::string)> on_violation)
    : queue_(queue),
      model_(model),
      device_(device),
      on_done_(std::move(on_done)),
      on_violation_(std::move(on_violation)) {}

void HashExecutor::load(const protocol::AssignStage& assignment) {
    cancel(assignment.epoch);
    assignment_ = assignment;
    tables_ = cluster::StageTables(assignment);
}

void HashExecutor::cancel(cluster::Epoch) {
    waiting_.clear();
    sampling_.clear();
    pages_.clear();
    page_owners_.clear();
    is_busy_ = false;
    is_broken_ = false;
    ++generation_;
    if (assignment_) tables_ = cluster::StageTables(*assignment_);
}

std::uint64_t HashExecutor::progress() const {
    const auto running =
        is_busy_ ? static_cast<std::uint64_t>((queue_.now() - busy_since_).count() / 100'000'000)
                 : 0;
    return steps_done_ * 1000 + running;
}

Duration HashExecutor::time_of(const protocol::Step& step) const {
    const auto rows = static_cast<double>(protocol::row_count(step));
    const auto layers = static_cast<double>(assignment_->layers.count);
    return Duration(static_cast<std::int64_t>(
        device_.slowdown * (static_cast<double>(device_.step_overhead.count()) +
                            rows * layers * static_cast<double>(device_.layer_row.count()))));
}

void HashExecutor::submit(protocol::Step step) {
    if (!assignment_) return on_violation_("a step was submitted to a device that holds no stage");
    if (step.epoch != assignment_->epoch)
        return on_violation_(fmt::format("a step of epoch {}.{} ran on a stage of epoch {}.{}",
                                         step.epoch.term, step.epoch.number,
                                         assignment_->epoch.term, assignment_->epoch.number));
    waiting_.push_back(std::move(step));
    if (!is_busy_) start_next();
}

void HashExecutor::start_next() {
    if (waiting_.empty()) return;
    is_busy_ = true;
    busy_since_ = queue_.now();
    queue_.after(time_of(waiting_.front()), [this, generation = generation_] {
        if (generation != generation_) return;
        const protocol::Step step = std::move(waiting_.front());
        waiting_.pop_front();
        is_busy_ = false;
        ++steps_done_;
        StepOutcome outcome = compute(step);
        start_next();
        on_done_(std::move(outcome));
    });
}

/// A page belongs to the sequence that it was given to last. Whoever had it before may still be in
/// the tables (its drop can travel in another lane) but must not run again.
void HashExecutor::check_pages(const protocol::Step& step) {
    for (const protocol::PageTableChange& change : step.page_changes)
        for (const protocol::PageId page : change.pages)
            page_owners_[{change.group.value, page}] = change.sequence;
    for (const protocol::StepRun& run : step.runs) {
        const auto& tables = tables_.sequence(run.sequence).tables;
        for (std::uint32_t group = 0; group < tables.size(); ++group)
            for (const protocol::PageId page : tables[group].pages)
                if (const SequenceId owner = page_owners_[{group, page}]; owner != run.sequence)
                    on_violation_(fmt::format(
                        "page {} of group {} is owned by sequence {}, but {} runs with it",
                        page.value, group, owner.value, run.sequence.value));
    }
}

StepOutcome HashExecutor::compute(const protocol::Step& step) {
    StepOutcome outcome{.epoch = step.epoch,
                        .number = step.number,
                        .error = {},
                        .activations = {},
                        .tokens = {},
                        .logits = {}};
    if (device_.fails_next_step || is_broken_) {
        device_.fails_next_step = false;
        is_broken_ = true;  // what follows would build on what is missing
        outcome.error = unavailable("device lost");
        return outcome;
    }
    if (const Error error = tables_.apply(step); !error.ok()) {
        on_violation_(fmt::format("step {} does not fit what ran before: {}", step.number.value,
                                  std::string(error.message())));
        outcome.error = error;
        return outcome;
    }
    check_pages(step);
    for (const SequenceId dropped : step.drops) sampling_.erase(dropped);
    std::vector<HashRow> rows(protocol::row_count(step));
    if (!assignment_->has_input) {
        ARTEL_CHECK(step.activations.size() == rows.size() * kHashRowBytes,
                    "the worker checks sizes before it submits");
        std::memcpy(rows.data(), step.activations.data(), step.activations.size());
    }
    std::size_t next = 0;
    std::vector<std::byte> logits;
    for (const protocol::StepRun& run : step.runs) {
        for (std::uint32_t i = 0; i < run.tokens.size(); ++i, ++next) {
            const std::uint32_t position = run.first_position + i;
            if (assignment_->has_input) rows[next] = embed(run.tokens[i], position);
            rows[next] = run_layers(rows[next], run.sequence, position);
        }
        if (!assignment_->has_output || !run.samples) continue;
        const auto position = run.first_position + static_cast<std::uint32_t>(run.tokens.size());
        outcome.tokens.push_back({.sequence = run.sequence,
                                  .position = position,
                                  .token = sample(run, rows[next - 1], position),
                                  .logprob = 0,
                                  .top_logprobs = {}});
    }
    if (!assignment_->has_output) {
        std::vector<std::byte> bytes(rows.size() * kHashRowBytes);
        std::memcpy(bytes.data(), rows.data(), bytes.size());
        outcome.activations = SharedBytes(std::move(bytes));
    }
    return outcome;
}

std::uint64_t& HashExecutor::state_at(std::uint32_t layer, std::uint32_t group,
                                      const cluster::StageTables::Sequence& sequence,
                                      std::uint32_t position) {
    const bool is_slot = model_.groups[group].kind == StateKind::Slot;
    const protocol::PageId page = sequence.tables[group].page(is_slot ? 0 : position / kPageTokens);
    return pages_[{group, page.value, layer, is_slot ? 0 : position % kPageTokens}];
}

HashRow HashExecutor::run_layers(HashRow row, SequenceId id, std::uint32_t position) {
    const cluster::StageTables::Sequence& sequence = tables_.sequence(id);
    for (std::uint32_t layer = assignment_->layers.first; layer < assignment_->layers.end();
         ++layer) {
        std::uint64_t history = 0;
        for (const cluster::LayerState& state : model_.layers[layer].states) {
            const cluster::GroupProfile& group = model_.groups[state.group];
            if (group.kind == StateKind::Slot) {
                if (position > 0)
                    history = mix(history, state_at(layer, state.group, sequence, position));
                continue;
            }
            for (const std::uint32_t at : positions_read(group, position))
                history = mix(history, state_at(layer, state.group, sequence, at));
        }
        for (const cluster::LayerState& state : model_.layers[layer].states)
            state_at(layer, state.group, sequence, position) = mix(state_of(row, layer), history);
        row = apply_layer(row, layer, history);
    }
    return row;
}

protocol::TokenId HashExecutor::sample(const protocol::StepRun& run, HashRow final,
                                       std::uint32_t position) {
    if (run.sampling) {
        Sampling fresh{run.sampling->parameters, {}};
        for (const protocol::TokenCount& count : run.sampling->counts)
            if (count.generated > 0) fresh.generated[count.token] = count.generated;
        sampling_[run.sequence] = std::move(fresh);
    }
    const auto found = sampling_.find(run.sequence);
    if (found == sampling_.end()) {
        on_violation_(
            fmt::format("sequence {} samples without a sampling setup", run.sequence.value));
        return 0;
    }
    Sampling& sampling = found->second;
    const protocol::TokenId token =
        draw(final, sampling.parameters, sampling.generated, position, model_.vocabulary_size);
    ++sampling.generated[token];
    return token;
}

}  // namespace artel::simulation
