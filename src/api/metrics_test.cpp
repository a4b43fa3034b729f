// SPDX-License-Identifier: Apache-2.0
#include "api/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace artel::api {
namespace {

using testing::HasSubstr;

TEST(Metrics, CountWhatHappened) {
    Metrics metrics;
    metrics.on_first_token(std::chrono::milliseconds(3));
    metrics.on_first_token(std::chrono::hours(1));
    metrics.on_next_token(std::chrono::milliseconds(1));  // a bound counts as below
    metrics.on_completion_end("ok", 5, 7);
    metrics.on_completion_end("ok", 1, 1);
    metrics.on_completion_end("queue_full", 0, 0);
    cluster::Health health;
    health.state = cluster::ServiceState::Serving;
    health.requests_queued = 4;
    cluster::WorkerHealth worker;
    worker.name = "a\"b";
    worker.layers = {.first = 0, .count = 12};
    worker.is_connected = true;
    health.workers.push_back(worker);
    const std::string text = metrics.to_text(health);
    for (const char* line :
         {"artel_up 1\n", "artel_requests_queued 4\n",
          "artel_worker_layers{worker=\"a\\\"b\"} 12\n", "artel_worker_up{worker=\"a\\\"b\"} 1\n",
          "artel_completions_total{outcome=\"ok\"} 2\n",
          "artel_completions_total{outcome=\"queue_full\"} 1\n", "artel_prompt_tokens_total 6\n",
          "artel_generated_tokens_total 8\n",
          "artel_time_to_first_token_seconds_bucket{le=\"0.0025\"} 0\n",
          "artel_time_to_first_token_seconds_bucket{le=\"0.005\"} 1\n",
          "artel_time_to_first_token_seconds_bucket{le=\"300\"} 1\n",
          "artel_time_to_first_token_seconds_bucket{le=\"+Inf\"} 2\n",
          "artel_time_to_first_token_seconds_count 2\n",
          "artel_time_between_tokens_seconds_bucket{le=\"0.001\"} 1\n"})
        EXPECT_THAT(text, HasSubstr(line));
    EXPECT_TRUE(text.ends_with('\n'));
}

}  // namespace
}  // namespace artel::api
