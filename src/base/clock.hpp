// SPDX-License-Identifier: Apache-2.0
// Time as the code below runtime/ sees it: monotonic, injected, never read from the system
// directly.
#pragma once

#include <chrono>

namespace artel {

using Duration = std::chrono::nanoseconds;

struct MonotonicTime {  // tag: no relation to the calendar
    using duration = Duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<MonotonicTime>;
    static constexpr bool is_steady = true;
};
using TimePoint = MonotonicTime::time_point;

class Clock {
  public:
    virtual ~Clock() = default;
    virtual TimePoint now() const = 0;
};

inline double seconds(Duration d) {
    return std::chrono::duration<double>(d).count();
}

}  // namespace artel
