// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.hpp"

#include <chrono>

namespace artel {

namespace {

constexpr std::chrono::microseconds kSpinTime{50};

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Spins until condition() holds. False: it did not within kSpinTime.
template <class Condition>
bool spin_until(Condition condition) {
    constexpr int kPausesPerLook = 32;  // at the clock
    const auto end = std::chrono::steady_clock::now() + kSpinTime;
    while (true) {
        for (int i = 0; i < kPausesPerLook; ++i) {
            if (condition()) return true;
            pause_cpu();
        }
        if (std::chrono::steady_clock::now() >= end) return condition();
    }
}

bool is_open(std::uint64_t state) {
    return (state & 1) != 0;
}

}  // namespace

ThreadPool::ThreadPool(std::uint32_t thread_count) {
    for (std::uint32_t thread = 1; thread < thread_count; ++thread)
        threads_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
    is_stopping_ = true;
    {
        MutexLock lock(mutex_);  // a thread is now asleep, or will see the flag before it sleeps
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(const Loop& loop, std::uint32_t count) {
    if (threads_.empty() || count <= 1) {
        for (std::uint32_t piece = 0; piece < count; ++piece) loop.body(loop.context, piece, 0);
        return;
    }
    loop_ = loop;
    count_ = count;
    next_piece_ = 0;
    ++state_;
    if (sleepers_ != 0) {
        { MutexLock lock(mutex_); }
        changed_.notify_all();
    }
    take_pieces(0);
    ++state_;
    await_leavers();
}

void ThreadPool::take_pieces(std::uint32_t thread) {
    while (true) {
        const std::uint32_t piece = next_piece_.fetch_add(1, std::memory_order_relaxed);
        if (piece >= count_) return;
        loop_.body(loop_.context, piece, thread);
    }
}

void ThreadPool::work(std::uint32_t thread) {
    std::uint64_t seen = 0;
    while (true) {
        await_change(seen);
        if (is_stopping_) return;
        ++inside_;
        seen = state_;
        if (is_open(seen)) take_pieces(thread);
        leave();
    }
}

void ThreadPool::await_change(std::uint64_t seen) {
    const auto has_changed = [this, seen] {
        const std::uint64_t state = state_;
        return (state != seen && is_open(state)) || is_stopping_;
    };
    if (spin_until(has_changed)) return;
    MutexLock lock(mutex_);
    ++sleepers_;
    while (!has_changed()) changed_.wait(mutex_);
    --sleepers_;
}

void ThreadPool::leave() {
    if (--inside_ != 0 || !caller_sleeps_) return;
    { MutexLock lock(mutex_); }
    left_.notify_one();
}

void ThreadPool::await_leavers() {
    const auto have_left = [this] { return inside_ == 0; };
    if (spin_until(have_left)) return;
    MutexLock lock(mutex_);
    caller_sleeps_ = true;
    while (!have_left()) left_.wait(mutex_);
    caller_sleeps_ = false;
}

}  // namespace artel
