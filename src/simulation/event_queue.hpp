// SPDX-License-Identifier: Apache-2.0
// EventQueue: virtual time. Events run in the order of (time, insertion number), so a run depends
// on nothing but the seed. Single-threaded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.hpp"

namespace artel::simulation {

class EventQueue final : public Clock {
  public:
    TimePoint now() const override { return now_; }
    std::uint64_t events_done() const { return events_done_; }
    bool is_empty() const { return events_.empty(); }

    void at(TimePoint when, std::function<void()> event) {
        events_.emplace(std::pair{when < now_ ? now_ : when, ++inserted_}, std::move(event));
    }
    void after(Duration delay, std::function<void()> event) { at(now_ + delay, std::move(event)); }

    /// Runs events up to and including `end`; time is `end` afterwards.
    void run_until(TimePoint end) {
        while (!events_.empty() && events_.begin()->first.first <= end) {
            now_ = events_.begin()->first.first;
            const std::function<void()> event = std::move(events_.begin()->second);
            events_.erase(events_.begin());
            ++events_done_;
            event();
        }
        now_ = end;
    }

  private:
    TimePoint now_{};
    std::uint64_t inserted_ = 0;
    std::uint64_t events_done_ = 0;
    std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace artel::simulation
