// SPDX-License-Identifier: Apache-2.0
// RequestBook: the life of requests. Queued (first in, first out) -> sequences that prefill, then
// decode -> finished, failed or cancelled. It keeps every token of every sequence: that journal is
// the truth about a request. It does not know pages, steps' contents or workers; the coordinator
// asks it what to run (views), says what was sent and what came back, and removes ended sequences
// once their last step is back.
// Limits: queued requests and prompt tokens, sequences in flight (Limits).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/limits.hpp"
#include "cluster/request.hpp"
#include "cluster/scheduler.hpp"

namespace artel::cluster {

/// What of the plan matters for taking a request.
struct ServiceShape {
    std::uint32_t context = 0;
    std::uint32_t vocabulary_size = 0;
};

class RequestBook {
  public:
    explicit RequestBook(const Limits& limits) : limits_(limits) {}

    /// Queues the request, or says why not (nothing is told to the sink then).
    std::optional<Refusal> submit(RequestId id, Request request, std::shared_ptr<RequestSink> sink,
                                  const ServiceShape& shape, TimePoint now);
    void cancel(RequestId id);
    /// The epoch is over, nothing comes back: forgets every sequence and ends the requests that
    /// had begun. Those still queued wait for the next.
    void fail_started(const RequestFailure& failure);
    void fail_queued(const RequestFailure& failure);
    /// Service is back under a new plan: queued requests that it cannot take are refused.
    void recheck_queued(const ServiceShape& shape);
    void fail(SequenceId sequence, const RequestFailure& failure);
    /// Fails those past their deadline.
    void expire(TimePoint now);

    /// Takes queued requests while fewer than Limits::sequences are in flight.
    void admit();
    /// Ascending by id; ended ones are left out.
    std::vector<SequenceView> views() const;
    /// About how many bytes of sampling setup the next run of `rows` rows takes on the wire.
    std::uint64_t setup_bytes(SequenceId sequence, std::uint32_t rows) const;
    /// The run of `rows` rows that comes next for this sequence, now counted as sent with `number`.
    protocol::StepRun send_run(SequenceId sequence, std::uint32_t rows, StepNumber number);
    /// A step with this run has come back, with `token` if the run samples.
    void run_returned(const protocol::StepRun& run, const protocol::SampledToken* token,
                      TimePoint now);
    void deliver_logits(SequenceId sequence, std::uint32_t first_position, std::uint32_t rows,
                        SharedBytes logits);
    /// Sequences that have ended and have no step in flight; they are forgotten here by this call.
    std::vector<SequenceId> take_ended();

    std::uint32_t queued() const { return static_cast<std::uint32_t>(queue_.size()); }
    std::uint32_t running() const { return static_cast<std::uint32_t>(sequences_.size()); }
    bool is_idle() const { return queue_.empty() && sequences_.empty(); }
    /// When a place in the queue should be free, from how long requests take of late.
    Duration retry_after() const;

  private:
    struct Record {  // of one request
        Request request;
        std::shared_ptr<RequestSink> sink;
        TimePoint submitted;
        std::uint32_t choices_admitted = 0;
        std::uint32_t choices_ended = 0;
        std::uint32_t sequences_alive = 0;
        bool is_over = false;  // the sink has had its last call
    };
    struct Sequence {
        SequenceId id;
        RequestId request;
        std::uint32_t choice = 0;
        std::vector<TokenId> generated;
        std::uint32_t rows_sent = 0;  // positions [0, rows_sent) have gone out
        std::uint32_t rows_read = 0;  // and [0, rows_read) have come back
        std::uint32_t runs_in_flight = 0;
        StepNumber last_served;
        bool has_ended = false;
        bool has_sampled = false;  // the sampling setup has been sent in this epoch
    };
    std::uint32_t tokens_max(const Record& record) const;
    std::uint32_t logits_rows_room(const Sequence& sequence) const;
    void end_choice(Record& record, std::uint32_t choice, FinishReason reason);
    void fail_record(RequestId id, Record& record, const RequestFailure& failure);
    void take_token(Record& record, Sequence& sequence, const protocol::SampledToken& sampled,
                    TimePoint now);
    void leave_queue(RequestId id, Record& record);
    void forget_if_over(RequestId id);
    protocol::SamplingSetup sampling_setup(const Record& record, const Sequence& sequence) const;
    std::optional<Refusal> check(const Request& request, const ServiceShape& shape) const;

    Limits limits_;
    ServiceShape shape_;
    std::deque<RequestId> queue_;
    std::uint64_t queued_tokens_ = 0;
    std::map<RequestId, Record> records_;
    std::map<SequenceId, Sequence> sequences_;
    std::uint64_t last_sequence_ = 0;  // never used again, also over epochs
    Duration typical_duration_ = std::chrono::seconds(1);
};

}  // namespace artel::cluster
