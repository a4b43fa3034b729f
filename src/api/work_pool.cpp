// SPDX-License-Identifier: Apache-2.0
#include "api/work_pool.hpp"

#include <utility>

namespace artel::api {

WorkPool::WorkPool(Options options) : options_(options) {
    for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkPool::~WorkPool() {
    stop();
}

bool WorkPool::try_post(std::function<void()> work) {
    MutexLock lock(mutex_);
    if (is_stopped_ || queue_.size() >= options_.queued_max) return false;
    queue_.push_back(std::move(work));
    changed_.notify_one();
    return true;
}

void WorkPool::run() {
    for (;;) {
        std::function<void()> work;
        {
            MutexLock lock(mutex_);
            while (queue_.empty() && !is_stopped_) changed_.wait(mutex_);
            if (is_stopped_) return;
            work = std::move(queue_.front());
            queue_.pop_front();
        }
        work();
    }
}

void WorkPool::stop() {
    std::deque<std::function<void()>> dropped;  // destroyed after the lock: it may own anything
    {
        MutexLock lock(mutex_);
        is_stopped_ = true;
        dropped.swap(queue_);
        changed_.notify_all();
    }
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
}

}  // namespace artel::api
