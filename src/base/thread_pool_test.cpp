// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace artel {
namespace {

TEST(ThreadPool, RunsEveryPieceOnceForAnyThreadCount) {
    for (const std::uint32_t threads : {0U, 1U, 2U, 3U, 5U}) {
        ThreadPool pool(threads);
        for (const std::uint32_t count : {0U, 1U, 2U, 7U, 1000U}) {
            std::vector<std::atomic<int>> runs(count);
            pool.parallel_for(count, [&](std::uint32_t piece, std::uint32_t thread) {
                EXPECT_LT(thread, pool.thread_count());
                ++runs[piece];
            });
            for (const auto& run : runs) EXPECT_EQ(run, 1);
        }
    }
}

TEST(ThreadPool, WritesOfPiecesAreSeenByTheCallerAndByTheNextLoop) {
    ThreadPool pool(3);
    std::vector<std::uint64_t> values(64, 0);
    constexpr int kLoops = 20000;
    for (int loop = 0; loop < kLoops; ++loop)
        pool.parallel_for(64, [&](std::uint32_t piece, std::uint32_t) {
            values[piece] += values[piece] == static_cast<std::uint64_t>(loop) ? 1 : 1000;
        });
    for (const std::uint64_t value : values) EXPECT_EQ(value, kLoops);
}

TEST(ThreadPool, UsesSeveralThreads) {
    ThreadPool pool(2);
    std::atomic<std::uint32_t> arrived{0};
    std::set<std::uint32_t> threads;
    Mutex mutex;
    // Each of the two pieces waits for the other: one thread alone would never end.
    pool.parallel_for(2, [&](std::uint32_t, std::uint32_t thread) {
        ++arrived;
        while (arrived < 2) std::this_thread::yield();
        MutexLock lock(mutex);
        threads.insert(thread);
    });
    EXPECT_EQ(threads, (std::set<std::uint32_t>{0, 1}));
}

// Threads have gone to sleep before each loop, and the caller before the loop's end.
TEST(ThreadPool, WakesSleepersAndASleepingCaller) {
    ThreadPool pool(2);
    for (int loop = 0; loop < 20; ++loop) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::atomic<std::uint32_t> arrived{0};
        pool.parallel_for(2, [&](std::uint32_t, std::uint32_t thread) {
            ++arrived;
            while (arrived < 2) std::this_thread::yield();
            if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
        EXPECT_EQ(arrived, 2U);
    }
}

TEST(ThreadPool, EndsWhileItsThreadsSpinOrSleep) {
    for (int i = 0; i < 20; ++i) {
        ThreadPool pool(4);
        if (i % 2 == 0) pool.parallel_for(8, [](std::uint32_t, std::uint32_t) {});
        if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace
}  // namespace artel
