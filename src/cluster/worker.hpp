// SPDX-License-Identifier: Apache-2.0
// Worker: holds one stage and runs steps through it. Activations go straight to the next stage,
// results from the last stage to the coordinator. Believes nothing that it is sent: epochs, terms,
// senders, ids, ranges and sizes are checked before the executor sees a step. Runs on one thread;
// acts only through its Environment.
// What was sent for a step is kept until the coordinator has its result (Step::returned_through),
// so that it can be sent again after a link broke; a repeated step is recognised by its number.
// When the coordinator vanishes the worker drops all sequences' state, keeps its weights and waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/environment.hpp"
#include "cluster/limits.hpp"
#include "cluster/stage_tables.hpp"

namespace artel::cluster {

/// Deliberate bugs for the simulator's canaries; all off in the product.
struct WorkerCanaries {
    bool skips_epoch_check = false;
    bool forgets_resend = false;
};
struct WorkerOptions {
    protocol::WorkerReport report;  // name, machine, devices ...; epoch, held and process are
                                    // filled in
    NodeId coordinator;
    std::string coordinator_address;  // dialled for ever
    Epoch stored_epoch;               // from term.hpp's record; {0, 0}: none
    Timeouts timeouts;
    WorkerCanaries canaries;
};

enum class WorkerState : std::uint8_t { Idle, StoringEpoch, Loading, Ready };

class Worker final : public Node {
  public:
    Worker(WorkerOptions options, Environment environment);
    ~Worker() override;

    /// Dials the coordinator. Call once, before any event.
    void start();
    /// Tells the coordinator to plan without this worker.
    void drain(const std::string& reason);

    void on_connected(NodeId peer) override;
    void on_message(NodeId from, Message message) override;
    void on_peer_lost(NodeId peer, const std::string& reason) override;
    void on_step_done(StepOutcome outcome) override;
    void on_storage(StorageEvent event) override;
    void tick() override;

    WorkerState state() const { return state_; }
    const std::optional<protocol::AssignStage>& assignment() const { return assignment_; }
    Epoch epoch_obeyed() const { return obeyed_; }

  private:
    struct Peer {  // a neighbour of the pipe, or the coordinator
        bool is_connected = false;
        bool was_reported = false;  // as lost, in this epoch
        TimePoint last_heard{};
        TimePoint link_lost{};
    };
    void on_assign_stage(protocol::AssignStage assignment);
    void on_unload_stage(const protocol::UnloadStage& unload);
    void on_weights_chunk(protocol::WeightsChunk chunk);
    void on_step(NodeId from, protocol::Step step);
    void on_load_failed(LoadFailed failed);
    void on_range_wanted(const protocol::WeightsRange& range);
    void on_record_stored(const RecordStored& stored);

    void begin_load();
    void announce_if_ready();
    void refuse(const Epoch& epoch, protocol::StageRefusal reason, std::string message);
    void forget_steps();  // all state of sequences; weights stay
    void leave_stage();   // no assignment any more; weights stay
    void lose_coordinator(const std::string& reason);

    std::map<StepNumber, protocol::Step>& next_lane();
    void run_next_step();
    void forward(const protocol::Step& step, StepOutcome outcome);
    void answer(const protocol::Step& step, StepOutcome outcome);
    void fail_step(StepNumber number, protocol::StageRefusal reason, std::string message);
    void keep_and_send(StepNumber number, NodeId to, Message message);
    void resend_to(NodeId peer);
    void forget_returned(StepNumber returned_through);
    std::optional<std::string> check_outcome(const protocol::Step& step,
                                             const StepOutcome& outcome) const;
    bool is_first_stage() const { return assignment_->previous == NodeId{}; }
    bool is_last_stage() const { return assignment_->next == NodeId{}; }
    NodeId step_source() const;

    void send_heartbeats(TimePoint now);
    void renew_link(NodeId node, Peer& peer, TimePoint now);
    void notice_stall(TimePoint now);
    void check_peers(TimePoint now);
    void report_lost(NodeId node, Peer& peer, const std::string& reason);
    bool is_neighbour(NodeId peer) const;
    bool is_linked(NodeId peer) const;
    static std::uint64_t logits_rows(const protocol::Step& step);
    protocol::WorkerReport report() const;

    WorkerOptions options_;
    Environment environment_;
    WorkerState state_ = WorkerState::Idle;
    std::optional<protocol::AssignStage> assignment_;
    Epoch obeyed_;  // largest ever; stored
    bool is_loaded_ = false;
    std::map<NodeId, Peer> peers_;
    TimePoint loaded_at_{};
    bool has_reported_unreachable_ = false;

    StageTables tables_;
    std::map<StepNumber, protocol::Step> waiting_decode_, waiting_prefill_;
    std::uint32_t decode_turns_ = 0;  // in a row, while a prefill step waited
    std::optional<protocol::Step> running_;
    std::set<StepNumber> seen_;  // steps above returned_through_ that have arrived
    StepNumber returned_through_;
    struct Kept {
        NodeId to;
        std::vector<Message> messages;
    };
    std::map<StepNumber, Kept> kept_;
    std::map<protocol::WeightsRange, std::uint32_t> ranges_wanted_;  // and how often asked
    TimePoint last_heartbeat_{};
    TimePoint last_tick_{};
};

}  // namespace artel::cluster
