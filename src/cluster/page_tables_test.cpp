// SPDX-License-Identifier: Apache-2.0
// Pages: never two owners, never free while a step names them, and none lost.
#include "cluster/page_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/random.hpp"
#include "cluster/page_index.hpp"
#include "cluster/planner.hpp"

namespace artel::cluster {
namespace {

using protocol::PageTableChange;
using protocol::StateKind;

PageTables paged(std::uint32_t pages) {
    return PageTables({{{StateKind::Paged, 0}, pages}});
}

TEST(PageTables, GivesPagesAsPositionsNeedThem) {
    PageTables tables = paged(3);
    std::vector<PageTableChange> changes;
    ASSERT_TRUE(tables.extend(SequenceId{1}, 0, 64, changes));
    EXPECT_EQ(tables.pages_in_use(0), 1U);
    ASSERT_TRUE(tables.extend(SequenceId{1}, 64, 65, changes));
    EXPECT_EQ(tables.pages_in_use(0), 2U);
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[1].first_index, 1U);
    EXPECT_EQ(changes[1].pages, std::vector{PageId{1}});
    ASSERT_TRUE(tables.extend(SequenceId{1}, 65, 66, changes));
    EXPECT_EQ(changes.size(), 2U);  // nothing new
}

TEST(PageTables, ChangesNothingWhenPagesAreShort) {
    PageTables tables({{{StateKind::Paged, 0}, 10}, {{StateKind::Paged, 0}, 1}});
    std::vector<PageTableChange> changes;
    EXPECT_FALSE(tables.extend(SequenceId{1}, 0, 65, changes));
    EXPECT_TRUE(changes.empty());
    EXPECT_EQ(tables.pages_in_use(0), 0U);
}

TEST(PageTables, ADroppedPageWaitsForTheStepsThatNameIt) {
    PageTables tables = paged(2);
    std::vector<PageTableChange> changes;
    ASSERT_TRUE(tables.extend(SequenceId{1}, 0, 64, changes));
    tables.step_sent(SequenceId{1}, StepNumber{1});
    tables.step_sent(SequenceId{1}, StepNumber{2});
    tables.step_returned(StepNumber{1});
    tables.drop(SequenceId{1});
    EXPECT_EQ(tables.pages_in_use(0), 1U);
    tables.step_returned(StepNumber{2});
    EXPECT_EQ(tables.pages_in_use(0), 0U);
}

TEST(PageTables, AWindowLetsPagesGo) {
    PageTables tables({{{StateKind::Windowed, 100}, 4}});
    std::vector<PageTableChange> changes;
    for (std::uint32_t position = 0; position < 1000; ++position) {
        ASSERT_TRUE(tables.extend(SequenceId{1}, position, position + 1, changes)) << position;
        tables.step_sent(SequenceId{1}, StepNumber{position + 1});
        tables.step_returned(StepNumber{position + 1});
        EXPECT_LE(tables.pages_in_use(0), 3U);
    }
    EXPECT_EQ(changes.back().first_valid, (999U - 99U) / 64U);
}

TEST(PageTables, ASlotIsOnePageForAllPositions) {
    PageTables tables({{{StateKind::Slot, 0}, 1}});
    std::vector<PageTableChange> changes;
    ASSERT_TRUE(tables.extend(SequenceId{1}, 0, 5000, changes));
    EXPECT_EQ(tables.pages_in_use(0), 1U);
    EXPECT_FALSE(tables.extend(SequenceId{2}, 0, 1, changes));
}

TEST(PageTablesDeathTest, AStepOfAnUnknownSequenceIsABug) {
    PageTables tables = paged(1);
    EXPECT_DEATH(tables.step_sent(SequenceId{9}, StepNumber{1}), "owns no pages");
}

// Random prefill and decode of several sequences over a pipe: the planner's page count is enough,
// no page has two users among the steps in flight, and in the end none is missing.
// Long because one loop plays a whole pipe.
TEST(PageTables, ThePlannedPagesAreAlwaysEnoughAndNeverShared) {
    Random random(21);
    for (int round = 0; round < 60; ++round) {
        const auto stages = static_cast<std::uint32_t>(1 + random.below(5));
        const auto chunk = static_cast<std::uint32_t>(1 + random.below(200));
        const std::uint32_t context = 1500;
        const std::uint32_t parallel = 3;
        std::vector<PageTables::Group> groups;
        for (const GroupProfile& profile :
             {GroupProfile{StateKind::Paged, 0},
              GroupProfile{StateKind::Windowed, 1 + static_cast<std::uint32_t>(random.below(300))},
              GroupProfile{StateKind::Slot, 0}})
            groups.push_back(
                {profile, parallel * pages_per_sequence(profile, context, chunk, stages)});
        PageTables tables(groups);
        struct Sent {
            SequenceId sequence;
            StepNumber number;
            std::vector<std::vector<PageId>> pages;  // named, one list a group
        };
        std::deque<Sent> flying;
        std::map<SequenceId, std::uint32_t> positions;
        std::map<SequenceId, std::vector<std::pair<std::uint32_t, std::vector<PageId>>>> held;
        std::uint64_t last_sequence = 0;
        std::uint64_t number = 0;
        for (int turn = 0; turn < 400; ++turn) {
            if (positions.size() < parallel) positions[SequenceId{++last_sequence}] = 0;
            auto chosen = positions.begin();
            std::advance(chosen, static_cast<long>(random.below(positions.size())));
            const SequenceId sequence = chosen->first;
            if (flying.size() > stages || random.chance(0.3)) {
                if (flying.empty()) continue;
                tables.step_returned(flying.front().number);
                flying.pop_front();
                continue;
            }
            const std::uint32_t first = chosen->second;
            const std::uint32_t end =
                std::min(context, first + 1 + static_cast<std::uint32_t>(random.below(chunk)));
            if (first == context || random.chance(0.02)) {
                const bool is_flying =
                    std::any_of(flying.begin(), flying.end(),
                                [&](const Sent& s) { return s.sequence == sequence; });
                if (is_flying) continue;
                tables.drop(sequence);
                held.erase(sequence);
                positions.erase(sequence);
                continue;
            }
            std::vector<PageTableChange> changes;
            ASSERT_TRUE(tables.extend(sequence, first, end, changes)) << "round " << round;
            auto& mine = held[sequence];
            mine.resize(groups.size());
            for (const PageTableChange& change : changes) {
                auto& [valid, pages] = mine[change.group.value];
                pages.erase(pages.begin(), pages.begin() + (change.first_valid - valid));
                valid = change.first_valid;
                EXPECT_EQ(change.first_index, valid + pages.size());
                pages.insert(pages.end(), change.pages.begin(), change.pages.end());
            }
            Sent sent{sequence, StepNumber{++number}, {}};
            for (std::size_t g = 0; g < groups.size(); ++g) {
                const GroupProfile& profile = groups[g].profile;
                EXPECT_LE(mine[g].first, first_visible_index(profile.kind, profile.window, first));
                EXPECT_GE(mine[g].first + mine[g].second.size(), end_index(profile.kind, end));
                sent.pages.push_back(mine[g].second);
                for (const Sent& other : flying)
                    for (const PageId page : sent.pages[g])
                        EXPECT_TRUE(
                            other.sequence == sequence ||
                            std::count(other.pages[g].begin(), other.pages[g].end(), page) == 0);
            }
            tables.step_sent(sequence, sent.number);
            flying.push_back(std::move(sent));
            chosen->second = end;
        }
        for (const Sent& sent : flying) tables.step_returned(sent.number);
        for (const auto& [sequence, position] : positions) tables.drop(sequence);
        for (std::size_t g = 0; g < groups.size(); ++g) EXPECT_EQ(tables.pages_in_use(g), 0U);
    }
}

}  // namespace
}  // namespace artel::cluster
