// SPDX-License-Identifier: Apache-2.0
// SerialThread: one thread that runs jobs in the order they were posted. For work that blocks
// (files) or computes for long (steps), away from the loop. The queue has a limit; who posts must
// have bounded the number of unanswered jobs already, so a full queue is a bug.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace artel::runtime {

class SerialThread {
  public:
    SerialThread();
    /// Drops the jobs that have not begun and waits for the one that has.
    ~SerialThread();
    SerialThread(const SerialThread&) = delete;
    SerialThread& operator=(const SerialThread&) = delete;

    void post(std::function<void()> job);
    /// Forgets jobs that have not begun.
    void drop_waiting();

  private:
    void run();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool is_stopping_ = false;
    std::thread thread_;  // last: starts when the rest is there
};

}  // namespace artel::runtime
