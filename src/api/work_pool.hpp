// SPDX-License-Identifier: Apache-2.0
// WorkPool: a few threads and a bounded queue for what must not run on the io thread (JSON bodies,
// templates, tokenising). A full queue refuses; work still queued at the end is dropped, not run.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace artel::api {

class WorkPool {
  public:
    struct Options {
        std::size_t threads = 2;
        std::size_t queued_max = 64;
    };
    explicit WorkPool(Options options);
    ~WorkPool();  // stop()

    /// False when the queue is full or the pool has stopped. Any thread.
    bool try_post(std::function<void()> work);
    /// Drops what is queued and joins the threads.
    void stop();

  private:
    void run();

    const Options options_;
    Mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<std::function<void()>> queue_ ARTEL_GUARDED_BY(mutex_);
    bool is_stopped_ ARTEL_GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
};

}  // namespace artel::api
