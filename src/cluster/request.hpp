// SPDX-License-Identifier: Apache-2.0
// The request interface: what a client side (HTTP API, `run`, `eval`, simulator) sees of a cluster.
// Tokens only: text, templates, stop strings and grammars are the client side's business (it
// cancels when a stop string is complete). The Coordinator implements the same calls on its own
// thread; runtime/ offers a RequestPort that may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "cluster/environment.hpp"
#include "protocol/messages.hpp"

namespace artel::cluster {

struct Request {
    std::vector<TokenId> prompt;            // at least one token
    std::uint32_t max_tokens = 0;           // 0: as many as the context has room for
    std::uint32_t choices = 1;              // answers, each with its own sequence
    protocol::SamplingParameters sampling;  // .choice is set for each answer
    std::vector<TokenId> end_tokens;        // the set that ends an answer; empty: none does
    std::optional<Duration> deadline;       // from submit to the end
    bool wants_prompt_logits = false;       // whole logits of every prompt position (eval)
    bool generates = true;                  // false: finished when the prompt is read (eval)
};

/// Why a request was not taken. Nothing was computed.
struct PromptTooLong {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t max_tokens = 0;  // 0 when not given
    std::uint32_t context = 0;
};
struct QueueFull {
    std::uint32_t queued = 0;
    Duration retry_after{0};
};
struct NotReady {
    std::string missing;  // for a person: "waiting for worker b (layers 10-19, ...)"
    Duration retry_after{0};
};
struct InvalidRequest {
    std::string parameter;
    std::string message;
};
using Refusal = std::variant<PromptTooLong, QueueFull, NotReady, InvalidRequest>;

enum class FinishReason : std::uint8_t { Stop, Length, Cancelled };

struct Token {
    TokenId id = 0;
    std::uint32_t position = 0;  // in the sequence, prompt included
    bool is_end = false;         // one of end_tokens: not part of the answer's text
    float logprob = 0;
    std::vector<protocol::TokenLogprob> top_logprobs;
};

enum class FailureKind : std::uint8_t { WorkerLost, DeadlineExceeded, StepFailed, ShuttingDown };
struct RequestFailure {
    FailureKind kind = FailureKind::WorkerLost;
    std::string message;
    Duration retry_after{0};  // 0: unknown
};

/// Receives the life of one request. Called on the cluster's thread: implementations only enqueue.
/// Order: on_refused alone, or any on_token / on_logits, an on_finished for each choice, or one
/// on_failed that ends all choices left. Nothing follows the last of these.
class RequestSink {
  public:
    virtual ~RequestSink() = default;
    virtual void on_refused(const Refusal& refusal) = 0;
    virtual void on_token(std::uint32_t choice, const Token& token) = 0;
    /// f32 (rows, vocabulary) of prompt positions [first_position, first_position + rows).
    virtual void on_logits(std::uint32_t first_position, std::uint32_t rows,
                           SharedBytes logits) = 0;
    virtual void on_finished(std::uint32_t choice, FinishReason reason) = 0;
    virtual void on_failed(const RequestFailure& failure) = 0;
    /// Bytes of logits given to on_logits that nobody has taken yet: back-pressure for what is
    /// computed next (kLogitsBytesMax).
    virtual std::uint64_t logits_waiting() const { return 0; }
};

enum class ServiceState : std::uint8_t {
    WaitingForWorkers,  // some expected worker is not there, or the model does not fit yet
    Loading,
    WarmingUp,
    Serving,
    Draining,  // takes no new request
    Stopped,   // refused by workers that obey a newer coordinator
};
struct WorkerHealth {
    NodeId node;
    std::string name;
    bool is_connected = false;
    LayerRange layers;  // of the current plan
    bool has_input = false;
    bool has_output = false;
    std::uint64_t weight_bytes = 0;
    std::uint64_t state_bytes = 0;
    std::uint64_t scratch_bytes = 0;
    std::uint64_t memory_bytes = 0;  // its limit
    std::uint64_t load_bytes_done = 0;
    std::uint64_t load_bytes_total = 0;
    bool is_ready = false;
    std::string arithmetic_class;
    std::string status;  // for a person
};
struct Health {
    ServiceState state = ServiceState::WaitingForWorkers;
    Epoch epoch;
    std::string message;                     // what is missing, or "serving"
    std::vector<LayerRange> missing_layers;  // of the last plan, held by nobody
    std::uint64_t missing_bytes = 0;  // memory that a plan lacks, or that the lost stages held
    std::string plan_refusal;   // why those who are there cannot hold the model; empty: they may
    std::uint32_t context = 0;  // of the plan
    std::uint32_t parallel = 0;
    double decode_tokens_per_second = 0;  // predicted, one request
    std::uint32_t requests_queued = 0;
    std::uint32_t requests_running = 0;  // sequences in flight
    std::uint64_t steps_done = 0;
    std::vector<WorkerHealth> workers;
};

/// The door for other threads. All calls return at once.
class RequestPort {
  public:
    virtual ~RequestPort() = default;
    /// The id counts from 1. Whether it was taken is told through the sink.
    virtual RequestId submit(Request request, std::shared_ptr<RequestSink> sink) = 0;
    /// Ends every choice left with FinishReason::Cancelled; unknown or ended ids are ignored.
    virtual void cancel(RequestId id) = 0;
    /// A recent snapshot.
    virtual Health health() const = 0;
};

}  // namespace artel::cluster
