// SPDX-License-Identifier: Apache-2.0
// The only doors between the cluster's state machines and the world. Two rules make them safe: a
// handler runs to completion and never blocks, and no call through a door calls a handler back
// before it returns (answers come as events, later). Everything runs on one thread.
// runtime/ and net/ implement the doors with threads, files and sockets, simulation/ with an event
// queue on virtual time. The owner of an Environment keeps its doors alive longer than the node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "protocol/messages.hpp"

namespace artel::cluster {

using protocol::Epoch;
using protocol::GroupIndex;
using protocol::LayerRange;
using protocol::Message;
using protocol::NodeId;
using protocol::PageId;
using protocol::RequestId;
using protocol::SequenceId;
using protocol::StepNumber;
using protocol::TokenId;

/// Links to other nodes, named by node. A link is up from on_connected to on_peer_lost.
class Transport {
  public:
    virtual ~Transport() = default;
    /// Puts `message` at the end of its lane's queue. Without a link, or when the link breaks
    /// before it arrives, the message is gone (on_peer_lost tells); it is never delivered twice.
    virtual void send(NodeId to, Message message) = 0;
    /// Keeps dialling `address` until disconnect(); each success is an on_connected. Nothing is
    /// dialled while a link to `peer` is up, whoever opened it. Calling it again with the same
    /// address changes nothing; another address takes the old one's place.
    virtual void connect(NodeId peer, const std::string& address) = 0;
    /// Closes the link, drops what is queued for it and dials no more. No on_peer_lost follows. A
    /// peer that dials us itself may come back (on_connected).
    virtual void disconnect(NodeId peer) = 0;
};

/// What became of a step: activations (rows, row_bytes), or on the last stage tokens (and logits).
struct StepOutcome {
    Epoch epoch;
    StepNumber number;
    Error error;                                 // ok, or why nothing below is set
    SharedBytes activations;                     // (rows, row_bytes); empty on the last stage
    std::vector<protocol::SampledToken> tokens;  // of rows that sample, in the order of the runs
    SharedBytes logits;                          // f32 (rows that want them, vocabulary)
};

/// The device that computes the loaded stage, one step after the other in the order of submit.
class Executor {
  public:
    virtual ~Executor() = default;
    /// `step` was checked against the assignment (epoch, layers, ids, sizes). Answered by one
    /// on_step_done, unless its epoch is cancelled first.
    virtual void submit(protocol::Step step) = 0;
    /// Forget all steps and all state of sequences up to and including `epoch`; outcomes of such
    /// steps may still arrive and are ignored. Pages start empty for the next epoch.
    virtual void cancel(Epoch epoch) = 0;
    /// Grows while a step is being computed, at the least once a step.
    virtual std::uint64_t progress() const = 0;
};

/// Files: the stage's weights (through the loader), the coordinator's model, small records.
class Storage {
  public:
    virtual ~Storage() = default;
    /// Worker: make the stage of `assignment` ready to run, from local copies, the cache, or ranges
    /// asked for by RangeWanted. LoadProgress events, then LoadFinished or LoadFailed. A new load
    /// takes the place of the one before; what stays the same is kept.
    virtual void load(const protocol::AssignStage& assignment) = 0;
    /// Worker: drop the stage and stop loading. No event follows.
    virtual void unload() = 0;
    /// Worker: the answer to a RangeWanted (bytes, or chunk.error); not yet checked against its
    /// hash.
    virtual void supply(protocol::WeightsChunk chunk) = 0;
    /// Coordinator: read a part of its model for `requester`. Answered by RangeRead.
    virtual void read(NodeId requester, const protocol::WeightsRequest& request) = 0;
    /// Store a small record (term.hpp) so that it outlives a power cut. Answered by RecordStored.
    virtual void put(const std::string& key, std::vector<std::byte> record) = 0;
};

struct LoadAdvanced {  // at least every few seconds while a load goes on
    Epoch epoch;
    std::uint64_t bytes_done = 0;
    std::uint64_t bytes_total = 0;
};
struct LoadFinished {
    Epoch epoch;
};
struct LoadFailed {
    Epoch epoch;
    protocol::StageRefusal reason = protocol::StageRefusal::LoadFailed;
    std::string message;
    std::uint64_t bytes_needed = 0;  // NotEnoughMemory
    std::uint64_t bytes_available = 0;
};
struct RangeWanted {  // at most kWeightRangesMax unanswered
    Epoch epoch;
    protocol::WeightsRange range;
};
struct RangeRead {
    NodeId requester;
    protocol::WeightsChunk chunk;
};
struct RecordStored {
    std::string key;
    Error error;
};
using StorageEvent =
    std::variant<LoadAdvanced, LoadFinished, LoadFailed, RangeWanted, RangeRead, RecordStored>;

enum class Severity : std::uint8_t { Debug, Info, Warning };

/// Where a node tells what it does; nothing comes back. Never given prompts or tokens.
class Observer {
  public:
    virtual ~Observer() = default;
    /// Something a person may want to read. Expected noise (old epochs) is Debug.
    virtual void note(Severity severity, const std::string& text) = 0;
    /// A place in the code that tests want reached (ARTEL_COVERED).
    virtual void covered(std::string_view mark) = 0;
    /// The coordinator has given `name` up; a local one is killed and started again.
    virtual void worker_lost(NodeId node, const std::string& name, const Error& why) = 0;
    /// The coordinator's state, plan or workers changed: health() says something new.
    virtual void health_changed() = 0;
};

/// All doors of one node.
struct Environment {
    Clock& clock;
    Transport& transport;
    Executor& executor;  // the coordinator never uses it
    Storage& storage;
    Random& random;
    Observer& observer;
};

/// Events in: what a Coordinator and a Worker are to the loop that drives them.
class Node {
  public:
    virtual ~Node() = default;
    virtual void on_connected(NodeId peer) = 0;
    virtual void on_message(NodeId from, Message message) = 0;
    virtual void on_peer_lost(NodeId peer, const std::string& reason) = 0;
    virtual void on_step_done(StepOutcome outcome) = 0;
    virtual void on_storage(StorageEvent event) = 0;
    /// About every 10 ms: deadlines and heartbeats only.
    virtual void tick() = 0;
};

/// Counts that the line was reached; the simulator's sweep lists the marks that no seed reached.
#define ARTEL_COVERED(environment, mark) (environment).observer.covered(mark)

}  // namespace artel::cluster
