// SPDX-License-Identifier: Apache-2.0
// The life of requests without a cluster: the test plays coordinator.
#include "cluster/requests.hpp"

#include <gtest/gtest.h>

#include "cluster/test_cluster.hpp"

namespace artel::cluster {
namespace {

using namespace std::chrono_literals;
using protocol::SampledToken;
using protocol::StepRun;

constexpr ServiceShape kShape{100, 50};

Limits small_limits() {
    Limits limits;
    limits.sequences = 2;
    limits.queued_requests = 3;
    limits.queued_prompt_tokens = 150;
    return limits;
}

Request request(std::size_t prompt, std::uint32_t tokens = 5) {
    Request request;
    request.prompt.assign(prompt, 7);
    request.max_tokens = tokens;
    return request;
}

struct Book {
    RequestBook book{small_limits()};
    TimePoint now{};
    std::uint64_t step = 0;
    std::uint64_t last_id = 0;

    std::pair<std::shared_ptr<CollectingSink>, std::optional<Refusal>> submit(Request given) {
        auto sink = std::make_shared<CollectingSink>();
        auto refusal = book.submit(RequestId{++last_id}, std::move(given), sink, kShape, now);
        return {sink, refusal};
    }
    StepRun send(SequenceId sequence, std::uint32_t rows) {
        return book.send_run(sequence, rows, StepNumber{++step});
    }
    void give(const StepRun& run, TokenId token) {
        const SampledToken sampled{
            run.sequence,
            run.first_position + static_cast<std::uint32_t>(run.tokens.size()),
            token,
            0,
            {}};
        book.run_returned(run, run.samples ? &sampled : nullptr, now);
    }
};

TEST(RequestBook, ReadsThePromptThenDecodes) {
    Book t;
    auto [sink, refusal] = t.submit(request(10, 3));
    EXPECT_FALSE(refusal);
    t.book.admit();
    auto views = t.book.views();
    ASSERT_EQ(views.size(), 1U);
    EXPECT_EQ(views[0].prompt_left, 10U);
    const SequenceId id = views[0].id;
    const StepRun first = t.send(id, 6);
    EXPECT_FALSE(first.samples);
    const StepRun second = t.send(id, 4);
    EXPECT_TRUE(second.samples);
    EXPECT_TRUE(second.sampling.has_value());
    EXPECT_EQ(second.first_position, 6U);
    EXPECT_EQ(t.book.views()[0].prompt_left, 0U);
    EXPECT_FALSE(t.book.views()[0].decodes);
    t.give(first, 0);
    t.give(second, 11);
    EXPECT_TRUE(t.book.views()[0].decodes);
    for (TokenId token : {12U, 13U}) {
        const StepRun run = t.send(id, 1);
        EXPECT_EQ(run.tokens, std::vector<TokenId>{token - 1});
        EXPECT_FALSE(run.sampling.has_value());  // once is enough
        t.give(run, token);
    }
    EXPECT_EQ(sink->tokens[0], (std::vector<TokenId>{11, 12, 13}));
    EXPECT_EQ(sink->finished[0], FinishReason::Length);
    EXPECT_TRUE(t.book.views().empty());
    EXPECT_EQ(t.book.take_ended(), std::vector{id});
    EXPECT_TRUE(t.book.is_idle());
}

TEST(RequestBook, WithoutMaxTokensItStopsAtTheContext) {
    Book t;
    auto [sink, refusal] = t.submit(request(97, 0));
    t.book.admit();
    const SequenceId id = t.book.views()[0].id;
    t.give(t.send(id, 97), 1);
    while (!t.book.views().empty()) t.give(t.send(id, 1), 1);
    EXPECT_EQ(sink->tokens[0].size(), 3U);
    EXPECT_EQ(sink->finished[0], FinishReason::Length);
}

TEST(RequestBook, RefusesWithTheRightType) {
    Book t;
    EXPECT_TRUE(std::holds_alternative<InvalidRequest>(*t.submit(request(0)).second));
    EXPECT_TRUE(std::holds_alternative<PromptTooLong>(*t.submit(request(100, 0)).second));
    EXPECT_TRUE(std::holds_alternative<PromptTooLong>(*t.submit(request(96, 5)).second));
    Request bad = request(5);
    bad.prompt[2] = 50;
    EXPECT_TRUE(std::holds_alternative<InvalidRequest>(*t.submit(bad).second));
    bad = request(5);
    bad.choices = 0;
    EXPECT_TRUE(std::holds_alternative<InvalidRequest>(*t.submit(bad).second));
    bad = request(5);
    bad.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::holds_alternative<InvalidRequest>(*t.submit(bad).second));
    bad = request(5);
    bad.sampling.logit_bias = {{50, 1.0F}};
    EXPECT_TRUE(std::holds_alternative<InvalidRequest>(*t.submit(bad).second));
    Request eval = request(100, 0);
    eval.generates = false;
    EXPECT_FALSE(t.submit(eval).second);
    EXPECT_EQ(t.book.queued(), 1U);
}

TEST(RequestBook, AFullQueueSaysWhenToTryAgain) {
    Book t;
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(t.submit(request(5)).second);
    const auto refusal = t.submit(request(5)).second;
    ASSERT_TRUE(refusal && std::holds_alternative<QueueFull>(*refusal));
    EXPECT_EQ(std::get<QueueFull>(*refusal).queued, 3U);
    EXPECT_GE(std::get<QueueFull>(*refusal).retry_after, Duration(1s));
    Book tokens;
    EXPECT_FALSE(tokens.submit(request(90)).second);
    EXPECT_TRUE(tokens.submit(request(90)).second);  // 180 prompt tokens, at most 150
}

TEST(RequestBook, AdmitsFirstInFirstOutAndEveryChoice) {
    Book t;
    Request two = request(5);
    two.choices = 2;
    two.sampling.seed = 9;
    auto [first, a] = t.submit(two);
    auto [second, b] = t.submit(request(6));
    t.book.admit();
    auto views = t.book.views();
    ASSERT_EQ(views.size(), 2U);
    EXPECT_EQ(t.send(views[0].id, 5).sampling->parameters.choice, 0U);
    EXPECT_EQ(t.send(views[1].id, 5).sampling->parameters.choice, 1U);
    EXPECT_EQ(t.book.queued(), 1U);
    t.book.cancel(RequestId{1});
    EXPECT_EQ(first->finished.size(), 2U);
    t.book.admit();
    EXPECT_EQ(t.book.queued(), 1U);  // their places are free only when their steps are back
}

TEST(RequestBook, ACancelledSequenceLeavesWhenItsLastStepIsBack) {
    Book t;
    auto [sink, refusal] = t.submit(request(10));
    t.book.admit();
    const SequenceId id = t.book.views()[0].id;
    const StepRun one = t.send(id, 5);
    const StepRun two = t.send(id, 5);
    t.book.cancel(RequestId{1});
    EXPECT_EQ(sink->finished[0], FinishReason::Cancelled);
    EXPECT_TRUE(t.book.views().empty());
    EXPECT_TRUE(t.book.take_ended().empty());
    t.give(one, 0);
    EXPECT_TRUE(t.book.take_ended().empty());
    t.give(two, 3);
    EXPECT_TRUE(sink->tokens[0].empty());
    EXPECT_EQ(t.book.take_ended(), std::vector{id});
    t.book.cancel(RequestId{1});  // again: nothing
    EXPECT_EQ(sink->finished.size(), 1U);
    EXPECT_TRUE(t.book.is_idle());
}

TEST(RequestBook, CancellingAQueuedRequestTouchesNoOther) {
    Book t;
    auto running = t.submit(request(5)).first;
    t.book.admit();
    auto waits = t.submit(request(5)).first;
    t.book.cancel(RequestId{2});
    EXPECT_EQ(waits->finished[0], FinishReason::Cancelled);
    EXPECT_TRUE(running->finished.empty());
    EXPECT_EQ(t.book.running(), 1U);
    EXPECT_EQ(t.book.queued(), 0U);
}

TEST(RequestBook, ADeadlineEndsQueuedAndRunning) {
    Book t;
    Request timed = request(5);
    timed.deadline = 2s;
    auto running = t.submit(timed).first;
    t.book.admit();
    auto waits = t.submit(timed).first;
    auto patient = t.submit(request(5)).first;
    t.now += 2s;
    t.book.expire(t.now);
    ASSERT_EQ(running->failures.size(), 1U);
    EXPECT_EQ(running->failures[0].kind, FailureKind::DeadlineExceeded);
    EXPECT_EQ(waits->failures.size(), 1U);
    EXPECT_TRUE(patient->failures.empty());
    t.book.expire(t.now + 9s);
    EXPECT_EQ(running->failures.size(), 1U);
}

TEST(RequestBook, TheEndOfAnEpochFailsWhatHadBegunAndKeepsTheQueue) {
    Book t;
    auto cancelled = t.submit(request(5)).first;
    auto running = t.submit(request(5)).first;
    t.book.admit();
    auto waits = t.submit(request(5)).first;
    t.book.cancel(RequestId{1});
    t.book.fail_started({FailureKind::WorkerLost, "b is gone", 5s});
    EXPECT_TRUE(cancelled->failures.empty());  // it had ended
    EXPECT_EQ(running->failures.size(), 1U);
    EXPECT_TRUE(waits->failures.empty());
    EXPECT_EQ(t.book.queued(), 1U);
    EXPECT_EQ(t.book.running(), 0U);
    t.book.admit();
    EXPECT_EQ(t.book.running(), 1U);
    t.book.fail_queued({FailureKind::WorkerLost, "b is gone", 5s});
    EXPECT_TRUE(waits->failures.empty());  // no longer queued
}

TEST(RequestBook, ARequestOfWhichOneAnswerHasBegunIsNotQueued) {
    Book t;
    Request three = request(5);
    three.choices = 3;
    auto sink = t.submit(three).first;
    t.book.admit();  // two of three
    t.book.fail_started({FailureKind::WorkerLost, "b is gone", 5s});
    EXPECT_EQ(sink->failures.size(), 1U);
    EXPECT_TRUE(t.book.is_idle());
}

TEST(RequestBook, FailsAndRechecksTheQueue) {
    Book t;
    auto small = t.submit(request(5)).first;
    auto large = t.submit(request(60)).first;
    t.book.recheck_queued({50, 50});
    EXPECT_TRUE(small->refusals.empty());
    ASSERT_EQ(large->refusals.size(), 1U);
    EXPECT_EQ(std::get<PromptTooLong>(large->refusals[0]).context, 50U);
    EXPECT_EQ(t.book.queued(), 1U);
    t.book.fail_queued({FailureKind::WorkerLost, "b is gone", 5s});
    EXPECT_EQ(small->failures.size(), 1U);
    EXPECT_TRUE(t.book.is_idle());
    EXPECT_FALSE(t.submit(request(90)).second) << "its prompt still counts as queued";
}

TEST(RequestBook, LogitsThatNobodyTakesHoldUpTheNext) {
    constexpr std::uint32_t kVocabulary = 1U << 20;  // 4 MiB a row, 64 rows at most
    RequestBook book(small_limits());
    Request eval = request(100, 0);
    eval.generates = false;
    eval.wants_prompt_logits = true;
    auto sink = std::make_shared<CollectingSink>();
    ASSERT_FALSE(book.submit(RequestId{1}, eval, sink, {100, kVocabulary}, {}));
    book.admit();
    const SequenceId sequence = book.views()[0].id;
    EXPECT_EQ(book.views()[0].rows_max, 64U);
    const StepRun run = book.send_run(sequence, 40, StepNumber{1});
    EXPECT_EQ(book.views()[0].rows_max, 24U) << "40 rows are in flight";
    book.run_returned(run, nullptr, {});
    sink->untaken = 40 * 4ULL * kVocabulary;
    EXPECT_EQ(book.views()[0].rows_max, 24U) << "40 rows lie with the client";
    sink->untaken = kLogitsBytesMax;
    EXPECT_EQ(book.views()[0].rows_max, 0U);
    EXPECT_TRUE(next_step(book.views(), {}, {}).runs.empty());
    sink->untaken = 0;
    EXPECT_EQ(book.views()[0].rows_max, 64U);
}

TEST(RequestBook, CountsTokensForPenaltiesOnly) {
    Book t;
    Request penal = request(3);
    penal.prompt = {4, 9, 4};
    penal.sampling.repetition_penalty = 1.1F;
    t.submit(penal);
    t.book.admit();
    const StepRun run = t.send(t.book.views()[0].id, 3);
    ASSERT_EQ(run.sampling->counts.size(), 2U);
    EXPECT_EQ(run.sampling->counts[0].token, 4U);
    EXPECT_EQ(run.sampling->counts[0].in_prompt, 2U);
}

TEST(RequestBook, AnEvaluationEndsWithItsPrompt) {
    Book t;
    Request eval = request(8, 0);
    eval.generates = false;
    eval.wants_prompt_logits = true;
    auto sink = t.submit(eval).first;
    t.book.admit();
    const StepRun run = t.send(t.book.views()[0].id, 8);
    EXPECT_TRUE(run.wants_logits);
    EXPECT_FALSE(run.samples);
    t.give(run, 0);
    EXPECT_EQ(sink->finished.size(), 1U);
    EXPECT_TRUE(sink->tokens[0].empty());
}

}  // namespace
}  // namespace artel::cluster
