// SPDX-License-Identifier: Apache-2.0
// TemplateChild: the Python process that renders templates, and one exchange of frames with it at a
// time. Every wait has a deadline; a child that misses one, or answers with nonsense, is killed and
// must be started again. Not thread-safe. The process ends with this object, and by itself when its
// parent dies (its socket closes).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace artel::text {

class TemplateChild {
  public:
    TemplateChild() = default;
    ~TemplateChild() { kill(); }
    TemplateChild(const TemplateChild&) = delete;
    TemplateChild& operator=(const TemplateChild&) = delete;

    /// Errors: Unavailable (no Python interpreter, no more processes).
    Error start();
    bool is_running() const { return pid_ > 0; }
    /// Sends a frame and waits for the answer. Errors: DeadlineExceeded, Unavailable (the child is
    /// gone), DataLoss (an answer above `answer_bytes_max`). After an error the child is not
    /// running.
    Result<std::string> exchange(std::string_view body, std::size_t answer_bytes_max,
                                 std::chrono::milliseconds limit);
    void kill();

  private:
    using TimePoint = std::chrono::steady_clock::time_point;
    Error send_all(std::string_view bytes, TimePoint deadline);
    Error receive_all(char* bytes, std::size_t count, TimePoint deadline);
    Error wait_for(short events, TimePoint deadline);

    pid_t pid_ = 0;
    int socket_ = -1;
};

}  // namespace artel::text
