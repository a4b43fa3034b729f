// SPDX-License-Identifier: Apache-2.0
// Field case C33: stop strings across chunk borders.
#include "text/stop_strings.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"

namespace artel::text {
namespace {

StopStrings make(std::vector<std::string> stops) {
    return *StopStrings::create(std::move(stops));
}

TEST(StopStrings, StopsInsideAChunk) {
    StopStrings stops = make({"END"});
    EXPECT_EQ(stops.add("textENDmore"), "text");
    EXPECT_TRUE(stops.stopped());
    EXPECT_EQ(stops.add("more"), "");
    EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, HoldsBackOnlyWhatCouldBecomeAStop) {
    StopStrings stops = make({"DEFGHIJ"});
    EXPECT_EQ(stops.add("ABCD"), "ABC");
    EXPECT_EQ(stops.add("EF"), "");
    EXPECT_EQ(stops.add("x"), "DEFx");
    EXPECT_EQ(stops.add("DEFGHI"), "");
    EXPECT_EQ(stops.add("J"), "");
    EXPECT_TRUE(stops.stopped());
}

TEST(StopStrings, TheEndReleasesWhatWasHeld) {
    StopStrings stops = make({"END"});
    EXPECT_EQ(stops.add("abEN"), "ab");
    EXPECT_EQ(stops.finish(), "EN");
    EXPECT_FALSE(stops.stopped());
}

TEST(StopStrings, TheStopThatBeginsFirstWinsThoughItIsWholeLater) {
    StopStrings stops = make({"bc", "abcX"});
    EXPECT_EQ(stops.add("abc"), "");
    EXPECT_FALSE(stops.stopped());
    EXPECT_EQ(stops.add("X"), "");
    EXPECT_TRUE(stops.stopped());
    StopStrings other = make({"bc", "abcX"});
    EXPECT_EQ(other.add("abc"), "");
    EXPECT_EQ(other.add("Y"), "a");
    EXPECT_TRUE(other.stopped());
    StopStrings ended = make({"bc", "abcX"});
    EXPECT_EQ(ended.add("abc"), "");
    EXPECT_EQ(ended.finish(), "a");
    EXPECT_TRUE(ended.stopped());
}

TEST(StopStrings, WithoutStopsEverythingPasses) {
    StopStrings stops;
    EXPECT_EQ(stops.add("abc"), "abc");
    EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, RefusesEmptyTooLongAndTooMany) {
    EXPECT_FALSE(StopStrings::create({"a", ""}).ok());
    EXPECT_FALSE(StopStrings::create({std::string(StopStrings::kBytesMax + 1, 'x')}).ok());
    EXPECT_FALSE(
        StopStrings::create(std::vector<std::string>(StopStrings::kCountMax + 1, "x")).ok());
}

TEST(StopStrings, AnyCutsGiveTheTextBeforeTheFirstStop) {
    for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
        Random random(seed);
        const auto word = [&random](std::uint64_t count) {
            std::string text;
            for (std::uint64_t i = 0; i < count; ++i) text += "abc"[random.below(3)];
            return text;
        };
        const std::string text = word(random.below(30));
        std::vector<std::string> list;
        for (std::uint64_t i = random.below(4); i > 0; --i)
            list.push_back(word(1 + random.below(5)));
        if (!list.empty() && random.chance(0.3)) list.push_back(list[0] + word(1));
        std::size_t first = std::string::npos;
        for (const std::string& stop : list) first = std::min(first, text.find(stop));

        StopStrings stops = make(list);
        std::string shown;
        for (std::size_t at = 0; at < text.size();) {
            const auto count = static_cast<std::size_t>(1 + random.below(4));
            shown += stops.add(text.substr(at, count));
            ASSERT_TRUE(text.substr(0, first).starts_with(shown)) << "seed " << seed;
            at += count;
        }
        shown += stops.finish();
        ASSERT_EQ(shown, text.substr(0, first)) << "seed " << seed;
        ASSERT_EQ(stops.stopped(), first != std::string::npos) << "seed " << seed;
    }
}

}  // namespace
}  // namespace artel::text
