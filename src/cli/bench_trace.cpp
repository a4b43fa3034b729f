// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_trace.hpp"

#include <algorithm>

#include "cli/cluster_client.hpp"
#include "cli/stop_signals.hpp"

namespace artel::cli {

class BenchTrace::Sink final : public cluster::RequestSink {
  public:
    Sink(std::shared_ptr<BenchTrace> trace, std::uint32_t request)
        : trace_(std::move(trace)), request_(request) {}
    void on_refused(const cluster::Refusal& refusal) override {
        trace_->end(request_, refusal_error(refusal));
    }
    void on_token(std::uint32_t, const cluster::Token&) override { trace_->add_token(request_); }
    void on_logits(std::uint32_t, std::uint32_t, SharedBytes) override {}  // never asked for
    void on_finished(std::uint32_t, cluster::FinishReason) override { trace_->end(request_, ok()); }
    void on_failed(const cluster::RequestFailure& failure) override {
        trace_->end(request_, unavailable("{}", failure.message));
    }

  private:
    const std::shared_ptr<BenchTrace> trace_;
    const std::uint32_t request_;
};

std::shared_ptr<cluster::RequestSink> BenchTrace::sink(std::uint32_t request) {
    return std::make_shared<Sink>(shared_from_this(), request);
}

void BenchTrace::add_token(std::uint32_t request) {
    const Time time = now();
    MutexLock lock(mutex_);
    const auto decoding =
        static_cast<std::uint32_t>(std::count(is_decoding_.begin(), is_decoding_.end(), true));
    arrivals_.push_back({time, !is_decoding_[request], decoding});
    is_decoding_[request] = true;
}

void BenchTrace::end(std::uint32_t request, const Error& error) {
    MutexLock lock(mutex_);
    is_decoding_[request] = false;
    if (!error.ok() && error_.ok()) error_ = error;
    --left_;
    changed_.notify_one();
}

Error BenchTrace::wait(Duration patience) {
    constexpr Duration kLook = std::chrono::milliseconds(200);  // for signals
    MutexLock lock(mutex_);
    for (Duration waited{0}; waited < patience; waited += kLook) {
        if (changed_.wait_for(mutex_, kLook, [this] { return left_ == 0 || !error_.ok(); }))
            return error_;
        if (stop_was_asked(std::chrono::milliseconds(0))) return stopped_by_signal();
    }
    return deadline_exceeded("a run took more than {:.0f} s", seconds(patience));
}

BenchSummary BenchTrace::summary(Time begin, std::uint32_t stages) {
    MutexLock lock(mutex_);
    BenchSummary summary;
    if (arrivals_.empty()) return summary;
    const auto last_first = std::find_if(arrivals_.rbegin(), arrivals_.rend(),
                                         [](const Arrival& arrival) { return arrival.is_first; });
    const Time read_end = last_first->time;
    summary.prefill_seconds = std::chrono::duration<double>(read_end - begin).count();
    summary.decode_seconds =
        std::chrono::duration<double>(arrivals_.back().time - read_end).count();
    for (auto arrival = last_first.base(); arrival != arrivals_.end(); ++arrival) {
        const std::uint32_t decoding = std::max(arrival->decoding, 1U);
        const std::uint32_t group = (decoding + stages - 1) / stages;
        const std::uint32_t steps_a_round = (decoding + group - 1) / group;
        summary.decoded_tokens += 1;
        summary.decode_steps += static_cast<double>(steps_a_round) / decoding;
    }
    return summary;
}

}  // namespace artel::cli
