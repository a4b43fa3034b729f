// SPDX-License-Identifier: Apache-2.0
// A step that makes no sense is refused with the reason, whatever is in it, and changes nothing.
#include "cluster/stage_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/random.hpp"

namespace artel::cluster {
namespace {

using ::testing::HasSubstr;
using namespace protocol;

AssignStage assignment() {
    AssignStage assign;
    assign.epoch = {1, 1};
    assign.layers = {0, 4};
    assign.layer_count = 8;
    assign.has_input = true;
    assign.next = NodeId{5};
    assign.next_address = "b:1";
    assign.vocabulary_size = 100;
    assign.context = 256;
    assign.rows_max = 8;
    assign.sequences_max = 4;
    assign.row_bytes = 16;
    assign.groups = {
        {StateKind::Paged, 0, 6}, {StateKind::Windowed, 70, 6}, {StateKind::Slot, 0, 4}};
    return assign;
}

Step step(std::uint64_t number, std::uint64_t sequence, std::uint32_t first,
          std::vector<TokenId> tokens) {
    Step step;
    step.epoch = {1, 1};
    step.number = StepNumber{number};
    step.runs = {{SequenceId{sequence}, first, std::move(tokens), false, false, std::nullopt}};
    if (first == 0)
        for (std::uint32_t group = 0; group < 3; ++group)
            step.page_changes.push_back(
                {GroupIndex{group}, SequenceId{sequence}, 0, 0, {PageId{2}}});
    return step;
}

TEST(StageTables, TakesStepsInOrderAndKnowsThePages) {
    StageTables tables(assignment());
    ASSERT_TRUE(tables.apply(step(1, 7, 0, {1, 2, 3})).ok());
    ASSERT_TRUE(tables.apply(step(2, 7, 3, {4})).ok());
    EXPECT_EQ(tables.sequence(SequenceId{7}).next_position, 4U);
    EXPECT_EQ(tables.sequence(SequenceId{7}).tables[0].page(0), PageId{2});
    Step last = step(3, 8, 0, {1});
    last.drops = {SequenceId{7}};
    ASSERT_TRUE(tables.apply(last).ok());
    EXPECT_EQ(tables.sequence_count(), 1U);
}

TEST(StageTables, RefusesWhatMakesNoSense) {
    StageTables tables(assignment());
    ASSERT_TRUE(tables.apply(step(1, 7, 0, {1, 2, 3})).ok());
    const auto refused = [&](Step bad, const char* why) {
        const Error error = tables.apply(bad);
        ASSERT_FALSE(error.ok()) << why;
        EXPECT_THAT(std::string(error.message()), HasSubstr(why));
        EXPECT_EQ(tables.sequence_count(), 1U);
        EXPECT_EQ(tables.sequence(SequenceId{7}).next_position, 3U);
    };
    refused(step(2, 7, 3, std::vector<TokenId>(9, 1)), "9 rows, expected 1 to 8");
    refused(step(2, 7, 3, {}), "0 rows");
    refused(step(2, 7, 4, {1}), "starts at position 4, expected 3");
    refused(step(2, 7, 2, {1}), "starts at position 2, expected 3");
    refused(step(2, 9, 5, {1}), "starts at position 5, expected 0");
    refused(step(2, 7, 3, {100}), "token 100 is not in the vocabulary");
    refused(step(2, 7, 0xFFFFFFFF, {1}), "past the context");
    Step bad = step(2, 7, 3, {1});
    bad.activations = SharedBytes::copy_of(as_bytes("0123456789abcdef"));
    refused(bad, "16 bytes of activations, expected 0");
    bad = step(2, 7, 3, {1});
    bad.runs.push_back(bad.runs[0]);
    refused(bad, "two runs");
    bad = step(2, 8, 0, {1});
    bad.page_changes[0].pages = {PageId{6}};
    refused(bad, "page 6 of 6");
    bad = step(2, 8, 0, {1});
    bad.page_changes.erase(bad.page_changes.begin());
    refused(bad, "need pages [0, 1)");
    bad = step(2, 8, 0, {1});
    bad.page_changes[2].pages = {PageId{1}, PageId{2}};  // a second slot
    refused(bad, "do not follow");
    bad = step(2, 8, 0, {1});
    bad.page_changes[0].group = GroupIndex{3};
    refused(bad, "in group 3 of 3");
    bad = step(2, 7, 3, {1});
    bad.page_changes = {{GroupIndex{0}, SequenceId{7}, 0, 5, {PageId{1}}}};
    refused(bad, "do not follow");
    bad.page_changes = {{GroupIndex{0}, SequenceId{7}, 1, 1, {}}};  // its only page is taken away
    refused(bad, "need pages");
    bad = step(2, 7, 3, {1});
    bad.drops = {SequenceId{7}};
    refused(bad, "drops sequence 7 and uses it");
}

TEST(StageTables, ChecksTheBytesOfActivations) {
    AssignStage assign = assignment();
    assign.has_input = false;
    StageTables tables(assign);
    Step first = step(1, 7, 0, {1, 2});
    EXPECT_FALSE(tables.apply(first).ok());
    first.activations = SharedBytes(std::vector<std::byte>(32));
    EXPECT_TRUE(tables.apply(first).ok());
}

TEST(StageTables, HoldsNoMoreSequencesThanItsLimit) {
    StageTables tables(assignment());
    std::uint64_t taken = 0;
    while (taken < 1000 && tables.apply(step(taken + 1, taken + 1, 0, {1})).ok()) ++taken;
    EXPECT_EQ(taken, 4U * 4U + 64U);
}

TEST(CheckAssignment, RefusesWhatMakesNoSense) {
    EXPECT_TRUE(check_assignment(assignment()).ok());
    const auto refused = [](const std::function<void(AssignStage&)>& spoil) {
        AssignStage assign = assignment();
        spoil(assign);
        return !check_assignment(assign).ok();
    };
    EXPECT_TRUE(refused([](auto& a) { a.layers = {0, 9}; }));
    EXPECT_TRUE(refused([](auto& a) { a.layers = {0xFFFFFFFF, 2}; }));
    EXPECT_TRUE(refused([](auto& a) { a.layers = {1, 4}; }));  // has the input, but not layer 0
    EXPECT_TRUE(refused([](auto& a) { a.previous = NodeId{3}; }));
    EXPECT_TRUE(refused([](auto& a) { a.next = NodeId{}; }));
    EXPECT_TRUE(refused([](auto& a) { a.has_output = true; }));
    EXPECT_TRUE(refused([](auto& a) { a.next_address.clear(); }));
    EXPECT_TRUE(refused([](auto& a) { a.context = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.rows_max = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.sequences_max = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.row_bytes = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.vocabulary_size = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.groups[0].page_count = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.groups[1].window = 0; }));
    EXPECT_TRUE(refused([](auto& a) { a.groups.resize(65, a.groups[0]); }));
}

// Any mutation of a good step ends as an Error or as a step that keeps the invariants; ASan and
// UBSan watch.
TEST(StageTables, SurvivesRandomSteps) {
    Random random(77);
    StageTables tables(assignment());
    int taken = 0;
    for (int round = 0; round < 20000; ++round) {
        Step any = step(static_cast<std::uint64_t>(round) + 1, 1 + random.below(60),
                        static_cast<std::uint32_t>(random.chance(0.7) ? 0 : random.below(300)),
                        {static_cast<TokenId>(random.below(110))});
        for (auto& change : any.page_changes) {
            if (random.chance(0.3))
                change.first_index = static_cast<std::uint32_t>(random.below(4));
            if (random.chance(0.2)) change.first_valid = static_cast<std::uint32_t>(random.next());
            if (random.chance(0.2)) change.pages.resize(random.below(9), PageId{1});
        }
        if (random.chance(0.5)) any.drops = {SequenceId{1 + random.below(60)}};
        if (tables.apply(any).ok()) ++taken;
    }
    EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace artel::cluster
