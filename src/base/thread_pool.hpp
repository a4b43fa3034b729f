// SPDX-License-Identifier: Apache-2.0
// ThreadPool: runs the pieces [0, count) of one loop at a time; any thread takes the next piece,
// the caller takes part. So which thread computes a piece is chance: a piece's result must depend
// on its number alone. Between loops the threads spin for at most 50 us, then sleep. A pool of one
// thread has no threads. parallel_for is called by one thread at a time, not from within a piece,
// and returns when every piece is done. Nothing is allocated in it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/mutex.hpp"

namespace artel {

class ThreadPool {
  public:
    /// `thread_count` counts the caller; 0 is taken as 1.
    explicit ThreadPool(std::uint32_t thread_count);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    std::uint32_t thread_count() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }

    /// body(piece, thread) for each piece in [0, count); thread < thread_count(), for scratch
    /// memory of a thread's own.
    template <class Body>
    void parallel_for(std::uint32_t count, Body&& body) {
        using Plain = std::remove_reference_t<Body>;
        run({[](void* context, std::uint32_t piece, std::uint32_t thread) {
                 (*static_cast<Plain*>(context))(piece, thread);
             },
             const_cast<void*>(static_cast<const void*>(&body))},
            count);
    }

  private:
    struct Loop {
        void (*body)(void* context, std::uint32_t piece, std::uint32_t thread) = nullptr;
        void* context = nullptr;
    };
    void run(const Loop& loop, std::uint32_t count);
    void take_pieces(std::uint32_t thread);
    void work(std::uint32_t thread);
    void await_change(std::uint64_t seen);
    void leave();
    void await_leavers();

    // `state_` is odd while a loop is open. A thread counts itself in `inside_` before it looks,
    // and the caller closes the loop before it waits for `inside_` to be 0: so a thread that comes
    // too late finds the loop closed, and none reads loop_ and count_ while they are written.
    Loop loop_;
    std::uint32_t count_ = 0;
    alignas(64) std::atomic<std::uint32_t> next_piece_{0};
    alignas(64) std::atomic<std::uint64_t> state_{0};
    alignas(64) std::atomic<std::uint32_t> inside_{0};
    std::atomic<std::uint32_t> sleepers_{0};
    std::atomic<bool> caller_sleeps_{false};
    std::atomic<bool> is_stopping_{false};

    Mutex mutex_;                          // only for going to sleep
    std::condition_variable_any changed_;  // state_ or is_stopping_
    std::condition_variable_any left_;     // inside_ has become 0
    std::vector<std::thread> threads_;
};

}  // namespace artel
