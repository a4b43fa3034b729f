// SPDX-License-Identifier: Apache-2.0
#include "runtime/serial_thread.hpp"

#include "base/check.hpp"

namespace artel::runtime {
namespace {

constexpr std::size_t kJobsMax = 65536;

}  // namespace

SerialThread::SerialThread() : thread_([this] { run(); }) {}

SerialThread::~SerialThread() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        jobs_.clear();
    }
    changed_.notify_all();
    thread_.join();
}

void SerialThread::post(std::function<void()> job) {
    {
        const std::lock_guard lock(mutex_);
        if (is_stopping_) return;
        ARTEL_CHECK(jobs_.size() < kJobsMax, "jobs are bounded by who posts them");
        jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
}

void SerialThread::drop_waiting() {
    const std::lock_guard lock(mutex_);
    jobs_.clear();
}

void SerialThread::run() {
    while (true) {
        std::function<void()> job;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
            if (is_stopping_) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        job();
    }
}

}  // namespace artel::runtime
