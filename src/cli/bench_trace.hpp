// SPDX-License-Identifier: Apache-2.0
// BenchTrace: when the tokens of requests that run together came, and what that says about speed.
// Steps are counted from the scheduler's rule: decoding sequences are cut into even groups, as many
// as the pipe has stages, and a step computes one group; each step reads every weight once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "cluster/request.hpp"

namespace artel::cli {

struct BenchSummary {
    double prefill_seconds = 0;  // until the last prompt is read: its first token
    double decode_seconds = 0;   // from there to the end
    double decoded_tokens = 0;   // in that time
    double decode_steps = 0;     // in that time
};

class BenchTrace : public std::enable_shared_from_this<BenchTrace> {
  public:
    using Time = std::chrono::steady_clock::time_point;
    static Time now() { return std::chrono::steady_clock::now(); }

    explicit BenchTrace(std::uint32_t requests) : is_decoding_(requests), left_(requests) {}

    std::shared_ptr<cluster::RequestSink> sink(std::uint32_t request);
    /// Until all have ended. Errors: the first failure; DeadlineExceeded; Cancelled (by a signal).
    Error wait(Duration patience);
    /// After wait().
    BenchSummary summary(Time begin, std::uint32_t stages);

  private:
    class Sink;
    struct Arrival {
        Time time;
        bool is_first = false;       // of its request: the end of a prompt
        std::uint32_t decoding = 0;  // requests that were decoding
    };
    void add_token(std::uint32_t request);
    void end(std::uint32_t request, const Error& error);

    Mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<Arrival> arrivals_ ARTEL_GUARDED_BY(mutex_);
    std::vector<bool> is_decoding_ ARTEL_GUARDED_BY(mutex_);
    std::uint32_t left_ ARTEL_GUARDED_BY(mutex_);
    Error error_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel::cli
