// SPDX-License-Identifier: Apache-2.0
// Coordinator: plans, schedules and answers for one model. A state machine of handlers that call
// its parts: membership (who is there), planner (who holds what), requests (what is asked), page
// tables and scheduler (what runs next). Runs on one thread; acts only through its Environment.
//
//   WaitingForWorkers -> Loading -> WarmingUp -> Serving     (Draining: no new requests)
//          ^--------------- a worker or a link is lost ---|  (all requests fail, new epoch)
//   any -> Stopped when a worker obeys a newer term
//
// Invariants: 1. no step is sent before every stage of its epoch is ready; 2. a step in flight is
// in exactly one epoch, the current one; 3. a page is given out again only after every step that
// names it has come back or its epoch has ended; 4. a term is stored before any message carries it;
// 5. no two processes of one worker's name are in one epoch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/environment.hpp"
#include "cluster/membership.hpp"
#include "cluster/page_tables.hpp"
#include "cluster/planner.hpp"
#include "cluster/requests.hpp"

namespace artel::cluster {

/// Deliberate bugs for the simulator's canaries; all off in the product.
struct CoordinatorCanaries {
    bool frees_pages_twice = false;
    bool loses_cancels = false;
    bool forgets_resend = false;
    bool counts_a_layer_twice = false;
};
struct CoordinatorOptions {
    ModelProfile model;
    PlanRequest plan;                           // context, parallel, chunk_rows, split
    std::vector<std::string> expected_workers;  // names, in the order of the pipe
    std::uint32_t expected_count = 0;           // of all workers; at least one is always awaited
    Epoch stored_epoch;                         // from term.hpp's record; {0, 0}: none
    Limits limits;                              // .sequences and .chunk_rows follow `plan`
    CoordinatorCanaries canaries;
};

class Coordinator final : public Node {
  public:
    Coordinator(CoordinatorOptions options, Environment environment);
    ~Coordinator() override;

    // Events.
    void on_connected(NodeId peer) override;
    void on_message(NodeId from, Message message) override;
    void on_peer_lost(NodeId peer, const std::string& reason) override;
    void on_step_done(StepOutcome outcome) override;  // the coordinator computes nothing: ignored
    void on_storage(StorageEvent event) override;
    void tick() override;

    // Requests. `id` is the caller's, never used before.
    std::optional<Refusal> submit(RequestId id, Request request, std::shared_ptr<RequestSink> sink);
    void cancel(RequestId id);
    /// Takes no more requests; what runs goes on. health() shows when nothing runs any more.
    void drain();

    Health health() const;
    const std::optional<Plan>& plan() const { return plan_; }
    Epoch epoch() const { return epoch_; }
    /// For checkers: pages in use and steps in flight.
    const PageTables& page_tables() const { return pages_; }
    std::size_t steps_in_flight() const { return in_flight_.size(); }

  private:
    struct InFlight {
        protocol::Step step;  // kept to be sent again after a broken link
        TimePoint sent;
        std::uint32_t logits_rows = 0;  // received so far
        std::uint32_t logits_rows_wanted = 0;
    };
    enum class TermState : std::uint8_t { None, Storing, Stored };

    void on_worker_report(NodeId from, protocol::WorkerReport report);
    void on_heartbeat(NodeId from, const protocol::Heartbeat& heartbeat);
    void on_peer_lost_report(NodeId from, const protocol::PeerLost& report);
    void on_load_progress(NodeId from, const protocol::LoadProgress& progress);
    void on_stage_ready(NodeId from, const protocol::StageReady& ready);
    void on_stage_refused(NodeId from, const protocol::StageRefused& refused);
    void on_drain(NodeId from, const protocol::Drain& drain);
    void on_weights_request(NodeId from, const protocol::WeightsRequest& request);
    void on_step_logits(NodeId from, protocol::StepLogits logits);
    void on_step_result(NodeId from, protocol::StepResult result);
    void on_step_failed(NodeId from, const protocol::StepFailed& failed);
    void on_record_stored(const RecordStored& stored);
    void on_warm_up_done();

    void ignore(const char* message);

    // Planning and loading.
    void choose_term();
    void try_plan();
    void start_epoch(Plan plan);
    protocol::AssignStage assignment(std::size_t stage) const;
    void rejoin(NodeId node, bool is_same_process);
    void check_ready();
    void send_warm_up();
    /// Ends the epoch: requests fail, pages are free; the next plan has a new number.
    void end_epoch(const std::string& why, FailureKind kind = FailureKind::WorkerLost);
    void give_up_worker(NodeId node, Error why);
    void lose_worker(const LostWorker& lost);
    void add_missing(Health& health) const;
    void stop(const std::string& why);
    bool is_in_plan(NodeId node) const;
    std::optional<std::size_t> stage_of(NodeId node) const;
    NodeId first_stage() const { return plan_->stages.front().node; }
    NodeId last_stage() const { return plan_->stages.back().node; }

    // Steps.
    void pump();  // admits, schedules and sends as much as may be in flight
    bool send_next_step();
    protocol::Step make_step(const ScheduledStep& scheduled);
    void send_step(protocol::Step step);
    void resend_steps();
    void finish_step(StepNumber number, const std::vector<protocol::SampledToken>& tokens);
    std::optional<std::string> check_result(const InFlight& flight,
                                            const protocol::StepResult& result) const;
    void deliver_logits(const InFlight& flight, const protocol::StepLogits& logits);
    void drop_ended();
    void notice_stall(TimePoint now);
    void check_queue(TimePoint now);
    void check_step_progress(TimePoint now);
    void check_load_progress(TimePoint now);
    void send_heartbeats(TimePoint now);
    StepNumber returned_through() const;
    bool is_current(const Epoch& epoch) const { return plan_ && epoch == epoch_; }
    std::vector<WorkerProfile> usable_workers() const;
    std::uint64_t progress_sum() const;
    WorkerHealth worker_health(NodeId node, const Member& member) const;
    void set_state(ServiceState state, std::string message);

    CoordinatorOptions options_;
    Environment environment_;
    Membership membership_;
    RequestBook requests_;
    PageTables pages_;
    std::optional<Plan> plan_;
    std::vector<PlanStage> last_stages_;  // of the last plan, to say what lost workers held
    ServiceState state_ = ServiceState::WaitingForWorkers;
    std::string message_;
    std::string why_ended_;  // the last epoch; empty once served again
    std::string plan_refusal_;
    std::uint64_t refusal_bytes_ = 0;  // that the refused plan lacks
    bool is_draining_ = false;
    Epoch epoch_;  // of the current or last plan
    TermState term_state_ = TermState::None;
    std::uint64_t largest_term_seen_ = 0;
    TimePoint retry_plan_at_{};
    std::uint64_t last_step_ = 0;  // number of the last step sent in this epoch
    std::map<StepNumber, InFlight> in_flight_;
    std::map<NodeId, std::uint32_t> ranges_asked_;  // of weights, not yet read
    std::vector<SequenceId> drops_;                 // to go with the next step
    TimePoint last_step_progress_{};
    std::uint64_t progress_sum_ = 0;  // of all workers, when progress was last seen
    TimePoint last_heartbeat_{};
    TimePoint last_tick_{};
    TimePoint unserved_since_{};  // while not serving: when we last did
    std::uint64_t steps_done_ = 0;
};

}  // namespace artel::cluster
