// SPDX-License-Identifier: Apache-2.0
#include "api/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace artel::api {
namespace {

std::string head(std::string_view name, std::string_view type, std::string_view help) {
    return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <class Number>
std::string single(std::string_view name, std::string_view type, std::string_view help,
                   Number value) {
    return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

/// As the format wants label values.
std::string escaped(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (c == '\\' || c == '"') result += '\\';
        result += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return result;
}

/// One line for each worker.
template <class Read>
std::string for_workers(const cluster::Health& health, std::string_view name, std::string_view help,
                        Read read) {
    std::string text = head(name, "gauge", help);
    for (const cluster::WorkerHealth& worker : health.workers)
        text += fmt::format("{}{{worker=\"{}\"}} {}\n", name, escaped(worker.name), read(worker));
    return text;
}

std::string workers_text(const cluster::Health& health) {
    using Worker = const cluster::WorkerHealth&;
    std::string text = for_workers(health, "artel_worker_up", "Whether the worker is connected.",
                                   [](Worker worker) { return worker.is_connected ? 1 : 0; });
    text += for_workers(health, "artel_worker_layers", "Layers that the worker holds.",
                        [](Worker worker) { return worker.layers.count; });
    text += for_workers(health, "artel_worker_weight_bytes", "Memory for weights, in bytes.",
                        [](Worker worker) { return worker.weight_bytes; });
    text += for_workers(health, "artel_worker_state_bytes", "Memory for states, in bytes.",
                        [](Worker worker) { return worker.state_bytes; });
    text += for_workers(health, "artel_worker_scratch_bytes", "Memory for computing, in bytes.",
                        [](Worker worker) { return worker.scratch_bytes; });
    return text + for_workers(health, "artel_worker_memory_bytes", "Memory that artel may use.",
                              [](Worker worker) { return worker.memory_bytes; });
}

std::string cluster_text(const cluster::Health& health) {
    std::string text = single("artel_up", "gauge", "Whether requests are served.",
                              health.state == cluster::ServiceState::Serving ? 1 : 0);
    text += single("artel_requests_queued", "gauge", "Requests that wait for a place.",
                   health.requests_queued);
    text += single("artel_requests_active", "gauge", "Sequences being computed.",
                   health.requests_running);
    text += single("artel_steps_total", "counter", "Batches that went through all stages.",
                   health.steps_done);
    return text + single("artel_context_tokens", "gauge", "Longest prompt and answer together.",
                         health.context);
}

}  // namespace

void Metrics::Histogram::add(Duration took) {
    const double seconds = std::chrono::duration<double>(took).count();
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
    sum += seconds;
}

std::string Metrics::Histogram::to_text(std::string_view name, std::string_view help) const {
    std::string text = head(name, "histogram", help);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kBounds.size(); ++i) {
        below += counts[i];
        text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], below);
    }
    below += counts.back();
    return text + fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, below,
                              name, sum, name, below);
}

void Metrics::on_first_token(Duration took) {
    MutexLock lock(mutex_);
    first_token_.add(took);
}

void Metrics::on_next_token(Duration took) {
    MutexLock lock(mutex_);
    next_token_.add(took);
}

void Metrics::on_completion_end(std::string_view outcome, std::uint64_t prompt_tokens,
                                std::uint64_t completion_tokens) {
    MutexLock lock(mutex_);
    ++outcomes_[std::string(outcome)];
    prompt_tokens_ += prompt_tokens;
    completion_tokens_ += completion_tokens;
}

std::string Metrics::to_text(const cluster::Health& health) const {
    std::string text = cluster_text(health) + workers_text(health);
    MutexLock lock(mutex_);
    text += head("artel_completions_total", "counter", "Ended completions by how they ended.");
    for (const auto& [outcome, count] : outcomes_)
        text +=
            fmt::format("artel_completions_total{{outcome=\"{}\"}} {}\n", escaped(outcome), count);
    text += single("artel_prompt_tokens_total", "counter", "Tokens of prompts.", prompt_tokens_);
    text +=
        single("artel_generated_tokens_total", "counter", "Tokens of answers.", completion_tokens_);
    text += first_token_.to_text("artel_time_to_first_token_seconds",
                                 "From a request's arrival to its first token.");
    return text + next_token_.to_text("artel_time_between_tokens_seconds",
                                      "From one token of an answer to its next.");
}

}  // namespace artel::api
