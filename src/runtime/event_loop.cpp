// SPDX-License-Identifier: Apache-2.0
#include "runtime/event_loop.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>

namespace artel::runtime {
namespace {

namespace asio = boost::asio;

struct Ticker : std::enable_shared_from_this<Ticker> {
    Ticker(const EventLoop::Strand& strand, Duration interval, std::function<void()> action)
        : timer(strand), period(interval), what(std::move(action)) {}
    void arm() {
        timer.expires_after(period);
        timer.async_wait([self = shared_from_this()](boost::system::error_code cancelled) {
            if (cancelled) return;
            self->what();
            self->arm();
        });
    }
    asio::steady_timer timer;
    Duration period;
    std::function<void()> what;
};

}  // namespace

EventLoop::EventLoop(std::size_t thread_count)
    : io_(static_cast<int>(thread_count)),
      strand_(asio::make_strand(io_)),
      work_(asio::make_work_guard(io_)) {
    for (std::size_t i = 0; i < thread_count; ++i) threads_.emplace_back([this] { io_.run(); });
}

EventLoop::~EventLoop() {
    stop();
}

void EventLoop::post(std::function<void()> what) {
    asio::post(strand_, std::move(what));
}

void EventLoop::run(const std::function<void()>& what) {
    std::promise<void> done;
    asio::post(strand_, [&] {
        what();
        done.set_value();
    });
    done.get_future().wait();
}

void EventLoop::every(Duration period, std::function<void()> what) {
    auto ticker = std::make_shared<Ticker>(strand_, period, std::move(what));
    asio::post(strand_, [ticker] { ticker->arm(); });
}

void EventLoop::stop() {
    work_.reset();
    io_.stop();
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
    threads_.clear();
}

}  // namespace artel::runtime
