// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine_executor.hpp"

#include <algorithm>
#include <cstring>

namespace artel::runtime {
namespace {

using protocol::SequenceId;

graph::StateType state_type(protocol::StateType type) {
    return type == protocol::StateType::F16 ? graph::StateType::F16 : graph::StateType::F32;
}

engine::StageOptions stage_options(const protocol::AssignStage& assignment) {
    engine::StageOptions options{
        .parts = stage_parts(assignment),
        .state_type = state_type(assignment.state_type),
        .rows_max = {.step = assignment.rows_max, .logits = assignment.rows_max},
        .context = assignment.context,
        .pages = {}};
    for (const protocol::StateGroup& group : assignment.groups)
        options.pages.push_back(group.page_count);
    return options;
}

bool is_same_stage(const protocol::AssignStage& a, const protocol::AssignStage& b) {
    const auto pages = [](const protocol::AssignStage& assignment) {
        return stage_options(assignment).pages;
    };
    return a.model == b.model && stage_parts(a) == stage_parts(b) && a.state_type == b.state_type &&
           a.rows_max == b.rows_max && a.context == b.context && pages(a) == pages(b);
}

engine::SamplingState sampling_state(const protocol::SamplingSetup& setup) {
    const protocol::SamplingParameters& from = setup.parameters;
    engine::SamplingState state;
    state.parameters = {.temperature = from.temperature,
                        .top_k = from.top_k,
                        .top_p = from.top_p,
                        .min_p = from.min_p,
                        .presence_penalty = from.presence_penalty,
                        .frequency_penalty = from.frequency_penalty,
                        .repetition_penalty = from.repetition_penalty,
                        .logit_bias = {},
                        .seed = from.seed,
                        .choice = from.choice,
                        .wants_logprob = from.wants_logprob,
                        .top_logprobs = from.top_logprobs};
    for (const protocol::TokenBias& bias : from.logit_bias)
        state.parameters.logit_bias.emplace_back(bias.token, bias.bias);
    for (const protocol::TokenCount& count : setup.counts) {
        const std::vector<engine::TokenId> prompt(count.in_prompt, count.token);
        state.counts.add_prompt(prompt);
        if (count.generated > 0) state.counts.add_generated(count.token, count.generated);
    }
    return state;
}

protocol::SampledToken to_wire(SequenceId sequence, std::uint32_t position,
                               const engine::SampledToken& sampled) {
    protocol::SampledToken token{.sequence = sequence,
                                 .position = position,
                                 .token = sampled.token,
                                 .logprob = sampled.logprob,
                                 .top_logprobs = {}};
    for (const engine::TokenLogprob& top : sampled.top_logprobs)
        token.top_logprobs.push_back({top.token, top.logprob});
    return token;
}

/// The rows of a step as a stage takes them.
engine::StageBatch batch_of(const protocol::Step& step, const cluster::StageTables& tables,
                            bool has_output) {
    engine::StageBatch batch;
    std::map<SequenceId, std::uint32_t> numbers;
    for (const protocol::StepRun& run : step.runs) {
        const auto [place, is_new] =
            numbers.emplace(run.sequence, static_cast<std::uint32_t>(numbers.size()));
        if (is_new)
            for (const auto& table : tables.sequence(run.sequence).tables) {
                engine::PageRun pages{.first_page = table.first_valid, .pages = {}};
                for (const protocol::PageId page : table.pages) pages.pages.push_back(page.value);
                batch.page_tables.push_back(std::move(pages));
            }
        for (std::uint32_t i = 0; i < run.tokens.size(); ++i) {
            const bool is_last = i + 1 == run.tokens.size();
            if (has_output && (run.wants_logits || (run.samples && is_last)))
                batch.logit_rows.push_back(static_cast<std::uint32_t>(batch.positions.size()));
            batch.sequences.push_back(place->second);
            batch.positions.push_back(run.first_position + i);
            batch.tokens.push_back(run.tokens[i]);
        }
    }
    batch.activations = step.activations;
    return batch;
}

}  // namespace

models::StageParts stage_parts(const protocol::AssignStage& assignment) {
    return {.layers = {assignment.layers.first, assignment.layers.count},
            .has_input = assignment.has_input,
            .has_output = assignment.has_output};
}

EngineExecutor::EngineExecutor(EventLoop& loop, std::unique_ptr<backends::Backend> backend)
    : loop_(loop), backend_(std::move(backend)) {}

EngineExecutor::~EngineExecutor() {
    *is_alive_ = false;
}

void EngineExecutor::load(const protocol::AssignStage& assignment, OpenModel open,
                          engine::LoadProgress progress, std::function<void(Error)> done) {
    ++generation_;
    device_thread_.drop_waiting();
    device_thread_.post([this, assignment, open = std::move(open), progress = std::move(progress),
                         done = std::move(done)] {
        const Error error = load_stage(assignment, open, progress);
        loop_.post([alive = is_alive_, done, error] {
            if (*alive) done(error);
        });
    });
}

Error EngineExecutor::load_stage(const protocol::AssignStage& assignment, const OpenModel& open,
                                 const engine::LoadProgress& progress) {
    if (loaded_ && is_same_stage(loaded_->assignment, assignment)) {
        loaded_->assignment = assignment;
        forget_sequences();
        return ok();
    }
    loaded_.reset();  // first: there may not be memory for two
    ARTEL_ASSIGN(Model model, open());
    auto loaded = std::make_unique<Loaded>();
    loaded->assignment = assignment;
    loaded->index = std::move(model.index);
    ARTEL_ASSIGN(loaded->stage, engine::Stage::create(*loaded->index, stage_options(assignment),
                                                      *backend_, *model.weights, progress));
    loaded_ = std::move(loaded);
    forget_sequences();
    return ok();
}

void EngineExecutor::unload() {
    ++generation_;
    device_thread_.drop_waiting();
    device_thread_.post([this] { loaded_.reset(); });
}

void EngineExecutor::cancel(cluster::Epoch) {
    ++generation_;
    device_thread_.post([this] { forget_sequences(); });
}

void EngineExecutor::forget_sequences() {
    if (loaded_) tables_ = cluster::StageTables(loaded_->assignment);
    sampling_.clear();
}

void EngineExecutor::submit(protocol::Step step) {
    device_thread_.post([this, generation = generation_.load(), step = std::move(step)] {
        if (generation != generation_.load()) return;
        ++progress_;
        cluster::StepOutcome outcome = run(step);
        ++progress_;
        loop_.post([this, alive = is_alive_, generation, outcome = std::move(outcome)]() mutable {
            if (*alive && generation == generation_.load()) on_done_(std::move(outcome));
        });
    });
}

cluster::StepOutcome EngineExecutor::run(const protocol::Step& step) {
    auto outcome = compute(step);
    if (outcome.ok()) return *std::move(outcome);
    cluster::StepOutcome failed;
    failed.epoch = step.epoch;
    failed.number = step.number;
    failed.error = outcome.status();
    return failed;
}

Result<cluster::StepOutcome> EngineExecutor::compute(const protocol::Step& step) {
    if (!loaded_) return failed_precondition("no stage is loaded");
    ARTEL_TRY(tables_.apply(step));
    for (const SequenceId dropped : step.drops) sampling_.erase(dropped);
    cluster::StepOutcome outcome;
    outcome.epoch = step.epoch;
    outcome.number = step.number;
    if (step.runs.empty()) return outcome;
    const bool has_output = loaded_->assignment.has_output;
    ARTEL_ASSIGN(const engine::StageResult result,
                 loaded_->stage->run(batch_of(step, tables_, has_output)));
    if (!has_output) {
        outcome.activations = engine::to_bytes(result.activations);
        return outcome;
    }
    ARTEL_TRY(take_samples(step, result, outcome));
    return outcome;
}

Error EngineExecutor::take_samples(const protocol::Step& step, const engine::StageResult& result,
                                   cluster::StepOutcome& outcome) {
    const std::size_t vocabulary = loaded_->stage->model_shape().vocabulary_size;
    std::vector<std::byte> wanted;
    std::size_t row = 0;  // of result.logits
    for (const protocol::StepRun& run : step.runs) {
        const std::size_t rows = run.wants_logits ? run.tokens.size() : run.samples ? 1 : 0;
        const std::span<const float> logits(result.logits.data() + row * vocabulary,
                                            rows * vocabulary);
        row += rows;
        if (run.wants_logits) {
            const auto bytes = std::as_bytes(logits);
            wanted.insert(wanted.end(), bytes.begin(), bytes.end());
        }
        if (!run.samples) continue;
        if (run.sampling) sampling_[run.sequence] = sampling_state(*run.sampling);
        const auto state = sampling_.find(run.sequence);
        if (state == sampling_.end())
            return invalid_argument("sequence {} samples before its parameters came",
                                    run.sequence.value);
        const auto position = run.first_position + static_cast<std::uint32_t>(run.tokens.size());
        ARTEL_ASSIGN(
            const engine::SampledToken sampled,
            sampler_.sample(logits.subspan((rows - 1) * vocabulary), state->second, position));
        state->second.counts.add_generated(sampled.token);
        outcome.tokens.push_back(to_wire(run.sequence, position, sampled));
    }
    outcome.logits = SharedBytes(std::move(wanted));
    return ok();
}

}  // namespace artel::runtime
