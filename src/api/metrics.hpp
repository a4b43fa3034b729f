// SPDX-License-Identifier: Apache-2.0
// Metrics: what GET /metrics says, in Prometheus' text format: counters and histograms of
// completions kept here, and gauges of the cluster read from its Health. No label has values that
// clients choose. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "cluster/request.hpp"

namespace artel::api {

class Metrics {
  public:
    using Duration = std::chrono::nanoseconds;

    /// From the arrival of a request to its first token.
    void on_first_token(Duration took);
    /// From one token of a choice to the next.
    void on_next_token(Duration took);
    /// `outcome`: "ok", "client_gone" or the code of the error.
    void on_completion_end(std::string_view outcome, std::uint64_t prompt_tokens,
                           std::uint64_t completion_tokens);
    std::string to_text(const cluster::Health& health) const;

  private:
    static constexpr std::array<double, 16> kBounds = {  // seconds
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};
    struct Histogram {
        std::array<std::uint64_t, kBounds.size() + 1> counts{};  // the last is for all above
        double sum = 0;

        void add(Duration took);
        std::string to_text(std::string_view name, std::string_view help) const;
    };

    mutable Mutex mutex_;
    std::map<std::string, std::uint64_t, std::less<>> outcomes_ ARTEL_GUARDED_BY(mutex_);
    std::uint64_t prompt_tokens_ ARTEL_GUARDED_BY(mutex_) = 0;
    std::uint64_t completion_tokens_ ARTEL_GUARDED_BY(mutex_) = 0;
    Histogram first_token_ ARTEL_GUARDED_BY(mutex_);
    Histogram next_token_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel::api
