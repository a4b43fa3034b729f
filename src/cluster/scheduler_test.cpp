// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "base/random.hpp"

namespace artel::cluster {
namespace {

using protocol::Lane;

SequenceView decoding(std::uint64_t id, std::uint64_t last, bool in_flight = false) {
    SequenceView view;
    view.id = SequenceId{id};
    view.decodes = true;
    view.is_in_flight = in_flight;
    view.last_served = StepNumber{last};
    return view;
}
SequenceView reading(std::uint64_t id, std::uint32_t left, std::uint64_t last = 0) {
    SequenceView view;
    view.id = SequenceId{id};
    view.prompt_left = left;
    view.last_served = StepNumber{last};
    return view;
}

TEST(Scheduler, DecodesBeforeItReads) {
    const auto step = next_step({reading(1, 100), decoding(2, 5)}, {}, {.stage_count = 1});
    EXPECT_EQ(step.lane, Lane::Decode);
    ASSERT_EQ(step.runs.size(), 1U);
    EXPECT_EQ(step.runs[0].sequence.value, 2U);
}

TEST(Scheduler, SpreadsDecodingSequencesOverTheStages) {
    std::vector<SequenceView> sequences;
    for (std::uint64_t id = 1; id <= 7; ++id) sequences.push_back(decoding(id, 0));
    const auto step = next_step(sequences, {}, {.stage_count = 3});
    EXPECT_EQ(step.runs.size(), 3U);  // 7 over 3 stages: 3, 3, 1
    EXPECT_EQ(next_step(sequences, {}, {.stage_count = 1}).runs.size(), 7U);
}

TEST(Scheduler, AChunkTakesSeveralPromptsLongestWaitingFirst) {
    const auto step = next_step({reading(1, 100, 9), reading(2, 3, 8), reading(3, 5)}, {},
                                {.stage_count = 2, .chunk_rows = 20});
    EXPECT_EQ(step.lane, Lane::Prefill);
    ASSERT_EQ(step.runs.size(), 3U);
    EXPECT_EQ(step.runs[0].sequence.value, 3U);
    EXPECT_EQ(step.runs[1].sequence.value, 2U);
    EXPECT_EQ(step.runs[2].sequence.value, 1U);
    EXPECT_EQ(step.runs[2].rows, 12U);
}

TEST(Scheduler, ChunksOfOnePromptFollowEachOther) {
    SequenceView prompt = reading(1, 1000, 3);
    prompt.is_in_flight = true;
    EXPECT_EQ(next_step({prompt}, {0, 2}, {.stage_count = 2}).runs.size(), 1U);
    EXPECT_TRUE(next_step({prompt}, {0, 3}, {.stage_count = 2}).runs.empty());  // stages + 1
}

TEST(Scheduler, PrefillLeavesRoomForDecodeStepsThatComeBack) {
    // Two sequences decode on two stages, both in flight: one place is left for prefill.
    const std::vector<SequenceView> sequences = {decoding(1, 1, true), decoding(2, 2, true),
                                                 reading(3, 100)};
    EXPECT_EQ(next_step(sequences, {2, 0}, {.stage_count = 2}).lane, Lane::Prefill);
    EXPECT_TRUE(next_step(sequences, {1, 1}, {.stage_count = 2}).runs.empty());
}

TEST(Scheduler, KeepsARunWithinItsOwnLimit) {
    SequenceView view = reading(1, 100);
    view.rows_max = 8;
    EXPECT_EQ(next_step({view}, {}, {}).runs.at(0).rows, 8U);
}

// A pipe of steps that come back in order, with sequences that never end: nobody waits long.
TEST(Scheduler, NobodyWaitsForMoreThanOneTurnOfEveryOther) {
    Random random(11);
    for (int round = 0; round < 200; ++round) {
        const std::uint32_t stages = 1 + static_cast<std::uint32_t>(random.below(6));
        const std::size_t count = 1 + random.below(12);
        const SchedulerOptions options{stages, 1 + static_cast<std::uint32_t>(random.below(64)),
                                       1 + static_cast<std::uint32_t>(random.below(8))};
        std::map<std::uint64_t, SequenceView> sequences;
        for (std::uint64_t id = 1; id <= count; ++id)
            sequences[id] = random.chance(0.6)
                                ? decoding(id, 0)
                                : reading(id, 1 + static_cast<std::uint32_t>(random.below(5000)));
        struct Sent {
            ScheduledStep step;
        };
        std::deque<Sent> flying;
        std::uint64_t number = 0;
        std::map<std::uint64_t, std::uint64_t> served;
        for (int turn = 0; turn < 300; ++turn) {
            InFlightView view;
            for (const Sent& sent : flying)
                ++(sent.step.lane == Lane::Decode ? view.decode_steps : view.prefill_steps);
            std::vector<SequenceView> views;
            for (auto& [id, sequence] : sequences) views.push_back(sequence);
            const ScheduledStep step = next_step(views, view, options);
            ASSERT_LE(flying.size(), stages + 1);
            ASSERT_LE(view.decode_steps, stages);
            if (step.runs.empty()) {
                ASSERT_FALSE(flying.empty()) << "nothing to do although sequences wait";
                for (const auto& run : flying.front().step.runs)
                    if (sequences[run.sequence.value].decodes)
                        sequences[run.sequence.value].is_in_flight = false;
                flying.pop_front();
                continue;
            }
            ++number;
            for (const auto& run : step.runs) {
                SequenceView& sequence = sequences[run.sequence.value];
                ASSERT_FALSE(sequence.decodes && sequence.is_in_flight);
                ASSERT_TRUE(sequence.decodes ? run.rows == 1 : run.rows <= sequence.prompt_left);
                if (sequence.decodes) sequence.is_in_flight = true;
                sequence.last_served = StepNumber{number};
                served[run.sequence.value] = number;
            }
            flying.push_back({step});
        }
        for (auto& [id, sequence] : sequences)
            EXPECT_GE(served[id] + 4 * (count + stages + 1), number) << "sequence " << id;
    }
}

}  // namespace
}  // namespace artel::cluster
