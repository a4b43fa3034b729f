// SPDX-License-Identifier: Apache-2.0
#include "cluster/requests.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "protocol/limits.hpp"

namespace artel::cluster {

using protocol::SampledToken;
using protocol::SamplingParameters;
using protocol::SamplingSetup;
using protocol::StepRun;

namespace {

bool uses_counts(const SamplingParameters& parameters) {
    return parameters.presence_penalty != 0.0F || parameters.frequency_penalty != 0.0F ||
           parameters.repetition_penalty != 1.0F;
}

std::size_t unlike_tokens(const std::vector<TokenId>& tokens) {
    if (tokens.size() <= protocol::kCountsMax) return tokens.size();
    return std::set<TokenId>(tokens.begin(), tokens.end()).size();
}

bool is_finite(const SamplingParameters& p) {
    const bool numbers = std::isfinite(p.temperature) && std::isfinite(p.top_p) &&
                         std::isfinite(p.min_p) && std::isfinite(p.presence_penalty) &&
                         std::isfinite(p.frequency_penalty) && std::isfinite(p.repetition_penalty);
    return numbers && std::all_of(p.logit_bias.begin(), p.logit_bias.end(),
                                  [](const auto& bias) { return std::isfinite(bias.bias); });
}

}  // namespace

std::optional<Refusal> RequestBook::check(const Request& request, const ServiceShape& shape) const {
    if (request.prompt.empty()) return InvalidRequest{"prompt", "holds no token"};
    if (request.choices == 0 || request.choices > kChoicesMax)
        return InvalidRequest{"n",
                              fmt::format("is {}, expected 1 to {}", request.choices, kChoicesMax)};
    if (request.end_tokens.size() > kEndTokensMax)
        return InvalidRequest{"end_tokens", fmt::format("{} tokens, at most {}",
                                                        request.end_tokens.size(), kEndTokensMax)};
    const std::uint64_t prompt = request.prompt.size();
    const std::uint64_t generated = request.generates ? std::max(request.max_tokens, 1U) : 0;
    if (prompt + generated > shape.context)
        return PromptTooLong{prompt, request.max_tokens, shape.context};
    for (const TokenId token : request.prompt)
        if (token >= shape.vocabulary_size)
            return InvalidRequest{"prompt", fmt::format("token {} is not in the vocabulary of {}",
                                                        token, shape.vocabulary_size)};
    const SamplingParameters& sampling = request.sampling;
    if (!is_finite(sampling))
        return InvalidRequest{"sampling", "holds a number that is not finite"};
    if (sampling.top_logprobs > protocol::kTopLogprobsMax)
        return InvalidRequest{
            "top_logprobs",
            fmt::format("is {}, at most {}", sampling.top_logprobs, protocol::kTopLogprobsMax)};
    if (sampling.logit_bias.size() > protocol::kBiasesMax)
        return InvalidRequest{"logit_bias",
                              fmt::format("{} entries, at most {}", sampling.logit_bias.size(),
                                          protocol::kBiasesMax)};
    if (uses_counts(sampling) && unlike_tokens(request.prompt) > protocol::kCountsMax)
        return InvalidRequest{
            "repetition_penalty",
            fmt::format("penalties over more than {} unlike prompt tokens", protocol::kCountsMax)};
    for (const auto& bias : sampling.logit_bias)
        if (bias.token >= shape.vocabulary_size)
            return InvalidRequest{"logit_bias",
                                  fmt::format("token {} is not in the vocabulary", bias.token)};
    return std::nullopt;
}

std::optional<Refusal> RequestBook::submit(RequestId id, Request request,
                                           std::shared_ptr<RequestSink> sink,
                                           const ServiceShape& shape, TimePoint now) {
    ARTEL_CHECK(!records_.contains(id), "a request id is used once");
    if (auto refusal = check(request, shape)) return refusal;
    if (queue_.size() >= limits_.queued_requests ||
        queued_tokens_ + request.prompt.size() > limits_.queued_prompt_tokens)
        return QueueFull{queued(), retry_after()};
    shape_ = shape;
    queued_tokens_ += request.prompt.size();
    std::sort(request.end_tokens.begin(), request.end_tokens.end());
    records_.emplace(id, Record{std::move(request), std::move(sink), now, 0, 0, 0, false});
    queue_.push_back(id);
    return std::nullopt;
}

void RequestBook::end_choice(Record& record, std::uint32_t choice, FinishReason reason) {
    record.sink->on_finished(choice, reason);
    if (++record.choices_ended == record.request.choices) record.is_over = true;
}

void RequestBook::cancel(RequestId id) {
    const auto found = records_.find(id);
    if (found == records_.end() || found->second.is_over) return;
    Record& record = found->second;
    for (auto& [sequence_id, sequence] : sequences_) {
        if (sequence.request != id || sequence.has_ended) continue;
        sequence.has_ended = true;
        end_choice(record, sequence.choice, FinishReason::Cancelled);
    }
    for (std::uint32_t choice = record.choices_admitted; choice < record.request.choices; ++choice)
        end_choice(record, choice, FinishReason::Cancelled);
    leave_queue(id, record);
    forget_if_over(id);
}

void RequestBook::leave_queue(RequestId id, Record& record) {
    const auto place = std::find(queue_.begin(), queue_.end(), id);
    if (place == queue_.end()) return;
    queue_.erase(place);
    queued_tokens_ -= record.request.prompt.size();
}

void RequestBook::fail_record(RequestId id, Record& record, const RequestFailure& failure) {
    if (record.is_over) return;
    record.is_over = true;
    record.sink->on_failed(failure);
    for (auto& [sequence_id, sequence] : sequences_)
        if (sequence.request == id) sequence.has_ended = true;
    leave_queue(id, record);
}

void RequestBook::fail_started(const RequestFailure& failure) {
    for (auto it = records_.begin(); it != records_.end();) {
        if (it->second.choices_admitted == 0) {
            ++it;
            continue;
        }
        fail_record(it->first, it->second, failure);
        it = records_.erase(it);
    }
    sequences_.clear();
}

void RequestBook::fail_queued(const RequestFailure& failure) {
    const std::deque<RequestId> waiting = queue_;
    for (const RequestId id : waiting) {
        fail_record(id, records_.at(id), failure);
        forget_if_over(id);
    }
}

void RequestBook::recheck_queued(const ServiceShape& shape) {
    shape_ = shape;
    const std::deque<RequestId> waiting = queue_;
    for (const RequestId id : waiting) {
        Record& record = records_.at(id);
        const auto refusal = check(record.request, shape);
        if (!refusal) continue;
        record.is_over = true;
        record.sink->on_refused(*refusal);
        leave_queue(id, record);
        forget_if_over(id);
    }
}

void RequestBook::fail(SequenceId sequence, const RequestFailure& failure) {
    const auto found = sequences_.find(sequence);
    if (found == sequences_.end()) return;
    fail_record(found->second.request, records_.at(found->second.request), failure);
}

void RequestBook::expire(TimePoint now) {
    std::vector<RequestId> late;
    for (const auto& [id, record] : records_)
        if (record.request.deadline && now - record.submitted >= *record.request.deadline)
            late.push_back(id);
    for (const RequestId id : late) {
        const std::string message = fmt::format("not finished within its {:.1f} s",
                                                seconds(*records_.at(id).request.deadline));
        fail_record(id, records_.at(id), {FailureKind::DeadlineExceeded, message, Duration{0}});
        forget_if_over(id);
    }
}

void RequestBook::forget_if_over(RequestId id) {
    const auto found = records_.find(id);
    if (found == records_.end()) return;
    if (found->second.is_over && found->second.sequences_alive == 0) records_.erase(found);
}

void RequestBook::admit() {
    while (!queue_.empty() && sequences_.size() < limits_.sequences) {
        const RequestId id = queue_.front();
        Record& record = records_.at(id);
        const SequenceId sequence{++last_sequence_};
        sequences_.emplace(sequence, Sequence{.id = sequence,
                                              .request = id,
                                              .choice = record.choices_admitted,
                                              .generated = {},
                                              .last_served = {}});
        ++record.choices_admitted;
        ++record.sequences_alive;
        if (record.choices_admitted == record.request.choices) leave_queue(id, record);
    }
}

std::vector<SequenceView> RequestBook::views() const {
    std::vector<SequenceView> views;
    views.reserve(sequences_.size());
    for (const auto& [id, sequence] : sequences_) {
        if (sequence.has_ended) continue;
        const Request& request = records_.at(sequence.request).request;
        const auto prompt = static_cast<std::uint32_t>(request.prompt.size());
        SequenceView view{.id = id, .last_served = sequence.last_served};
        view.prompt_left = sequence.rows_sent < prompt ? prompt - sequence.rows_sent : 0;
        view.decodes = !sequence.generated.empty();
        view.is_in_flight = sequence.runs_in_flight > 0;
        if (request.wants_prompt_logits) view.rows_max = logits_rows_room(sequence);
        views.push_back(view);
    }
    return views;
}

std::uint32_t RequestBook::logits_rows_room(const Sequence& sequence) const {
    const std::uint64_t row_bytes = 4ULL * std::max(shape_.vocabulary_size, 1U);
    const std::uint64_t most = std::max<std::uint64_t>(1, kLogitsBytesMax / row_bytes);
    const RequestSink& sink = *records_.at(sequence.request).sink;
    const std::uint64_t untaken = (sink.logits_waiting() + row_bytes - 1) / row_bytes;
    const std::uint64_t used = untaken + (sequence.rows_sent - sequence.rows_read);
    return static_cast<std::uint32_t>(most - std::min(most, used));
}

SamplingSetup RequestBook::sampling_setup(const Record& record, const Sequence& sequence) const {
    SamplingSetup setup{record.request.sampling, {}};
    setup.parameters.choice = sequence.choice;
    if (!uses_counts(setup.parameters)) return setup;
    std::map<TokenId, protocol::TokenCount> counts;
    for (const TokenId token : record.request.prompt) ++counts[token].in_prompt;
    for (const TokenId token : sequence.generated) ++counts[token].generated;
    for (auto& [token, count] : counts) {
        count.token = token;
        setup.counts.push_back(count);
    }
    return setup;
}

std::uint64_t RequestBook::setup_bytes(SequenceId id, std::uint32_t rows) const {
    const Sequence& sequence = sequences_.at(id);
    const Request& request = records_.at(sequence.request).request;
    const std::size_t known = request.prompt.size() + sequence.generated.size();
    if (sequence.has_sampled || sequence.rows_sent + rows < known) return 0;
    const std::uint64_t counts =
        uses_counts(request.sampling) ? std::min<std::uint64_t>(known, protocol::kCountsMax) : 0;
    return 64 + 12 * request.sampling.logit_bias.size() + 16 * counts;
}

StepRun RequestBook::send_run(SequenceId id, std::uint32_t rows, StepNumber number) {
    Sequence& sequence = sequences_.at(id);
    const Record& record = records_.at(sequence.request);
    const std::vector<TokenId>& prompt = record.request.prompt;
    StepRun run{
        .sequence = id,
        .first_position = sequence.rows_sent,
        .tokens = {},
        .wants_logits = record.request.wants_prompt_logits && sequence.rows_sent < prompt.size(),
        .samples = false,
        .sampling = std::nullopt};
    for (std::uint32_t row = 0; row < rows; ++row) {
        const std::size_t position = sequence.rows_sent + row;
        run.tokens.push_back(position < prompt.size()
                                 ? prompt[position]
                                 : sequence.generated.at(position - prompt.size()));
    }
    sequence.rows_sent += rows;
    ++sequence.runs_in_flight;
    sequence.last_served = number;
    const std::size_t known = prompt.size() + sequence.generated.size();
    run.samples = record.request.generates && sequence.rows_sent == known;
    if (run.samples && !sequence.has_sampled) {
        run.sampling = sampling_setup(record, sequence);
        sequence.has_sampled = true;
    }
    return run;
}

std::uint32_t RequestBook::tokens_max(const Record& record) const {
    const auto room = shape_.context - static_cast<std::uint32_t>(record.request.prompt.size());
    return record.request.max_tokens == 0 ? room : std::min(room, record.request.max_tokens);
}

void RequestBook::take_token(Record& record, Sequence& sequence, const SampledToken& sampled,
                             TimePoint now) {
    sequence.generated.push_back(sampled.token);
    const auto& ends = record.request.end_tokens;
    const bool is_end = std::binary_search(ends.begin(), ends.end(), sampled.token);
    record.sink->on_token(sequence.choice, {sampled.token, sampled.position, is_end,
                                            sampled.logprob, sampled.top_logprobs});
    if (!is_end && sequence.generated.size() < tokens_max(record)) return;
    sequence.has_ended = true;
    end_choice(record, sequence.choice, is_end ? FinishReason::Stop : FinishReason::Length);
    typical_duration_ = (3 * typical_duration_ + (now - record.submitted)) / 4;
}

void RequestBook::run_returned(const StepRun& run, const SampledToken* token, TimePoint now) {
    const auto found = sequences_.find(run.sequence);
    if (found == sequences_.end()) return;  // the warm-up's own sequence
    Sequence& sequence = found->second;
    ARTEL_CHECK(sequence.runs_in_flight > 0, "a run came back twice");
    --sequence.runs_in_flight;
    sequence.rows_read = run.first_position + static_cast<std::uint32_t>(run.tokens.size());
    if (sequence.has_ended) return;
    Record& record = records_.at(sequence.request);
    if (token != nullptr) take_token(record, sequence, *token, now);
    if (!record.request.generates && sequence.rows_read == record.request.prompt.size()) {
        sequence.has_ended = true;
        end_choice(record, sequence.choice, FinishReason::Stop);
    }
}

void RequestBook::deliver_logits(SequenceId id, std::uint32_t first_position, std::uint32_t rows,
                                 SharedBytes logits) {
    const auto found = sequences_.find(id);
    if (found == sequences_.end() || found->second.has_ended) return;
    records_.at(found->second.request).sink->on_logits(first_position, rows, std::move(logits));
}

std::vector<SequenceId> RequestBook::take_ended() {
    std::vector<SequenceId> ended;
    for (auto it = sequences_.begin(); it != sequences_.end();) {
        const Sequence& sequence = it->second;
        if (!sequence.has_ended || sequence.runs_in_flight > 0) {
            ++it;
            continue;
        }
        const RequestId request = sequence.request;
        ended.push_back(it->first);
        it = sequences_.erase(it);
        --records_.at(request).sequences_alive;
        forget_if_over(request);
    }
    return ended;
}

Duration RequestBook::retry_after() const {
    const auto turns = static_cast<std::int64_t>(queue_.size() / std::max(limits_.sequences, 1U));
    return std::clamp<Duration>(typical_duration_ * (turns + 1), std::chrono::seconds(1),
                                std::chrono::seconds(60));
}

}  // namespace artel::cluster
