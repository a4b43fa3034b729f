// SPDX-License-Identifier: Apache-2.0
// EventLoop: the io threads of one process and the strand ("loop") on which the cluster's state
// machines run, one handler at a time. Handlers run where frames arrive, so a hop costs no extra
// wake-up; TLS work of other lanes goes on beside them on the second thread.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.hpp"

namespace artel::runtime {

class OsClock : public Clock {
  public:
    TimePoint now() const override {
        return TimePoint(std::chrono::duration_cast<Duration>(
            std::chrono::steady_clock::now().time_since_epoch()));
    }
};

class EventLoop {
  public:
    using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

    explicit EventLoop(std::size_t thread_count = 2);
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    boost::asio::io_context& io() { return io_; }
    const Strand& strand() const { return strand_; }

    /// Runs `what` on the loop, later. Any thread.
    void post(std::function<void()> what);
    /// Runs `what` on the loop and waits until it is done. Not from the loop itself.
    void run(const std::function<void()>& what);
    /// Calls `what` on the loop every `period` until the loop stops.
    void every(Duration period, std::function<void()> what);
    /// Lets no handler start any more and joins the threads. Not from the loop itself.
    void stop();

  private:
    boost::asio::io_context io_;
    Strand strand_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::vector<std::thread> threads_;
};

}  // namespace artel::runtime
