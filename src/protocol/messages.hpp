// SPDX-License-Identifier: Apache-2.0
// What nodes say to each other: plain structs in one variant. Bytes <-> structs is codec.hpp,
// frames are frame.hpp. Every field of a decoded message has been checked for range, but not for
// sense: whether a page, sequence, layer or epoch exists is checked by the receiver.
//
// Opening a link (versions, names, certificates) is done before the first message, by net/.
//
// Order: a link has four lanes, each in order. A step may overtake one in another lane only if they
// share no sequence and no page; the coordinator sees to that.
// Names: a step is (epoch, number), a token (sequence, position). A repeat changes nothing, so
// after a broken link whatever may have been lost is simply sent again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "protocol/ids.hpp"

namespace artel::protocol {

enum class Lane : std::uint8_t { Control = 0, Decode = 1, Prefill = 2, Weights = 3 };
inline constexpr std::uint32_t kLaneCount = 4;

// ---- membership ----

/// One device of a worker, as measured by its own probe. Figures are what kernels reach, not what
/// data sheets say.
struct DeviceReport {
    std::string name;                // "cpu", "AMD Instinct MI50"
    std::uint64_t memory_bytes = 0;  // the most that this worker may use
    std::uint64_t bandwidth_bytes_per_second = 0;
    std::uint64_t flops_per_second = 0;
    std::string arithmetic_class;  // bytes are promised alike within one class
};
/// What a worker already holds; all zero when it holds nothing.
struct HeldStage {
    Epoch epoch;
    LayerRange layers;
    Hash128 model;
    bool is_ready = false;
};
/// Worker -> coordinator, each time their link comes up.
struct WorkerReport {
    std::string name;
    std::string build_id;
    std::string machine_id;                  // equal for workers that share a machine
    std::uint64_t machine_memory_bytes = 0;  // what all workers of that machine may use together
    std::uint32_t threads = 0;
    std::vector<DeviceReport> devices;       // a stage runs on one; the first is used
    std::vector<std::string> architectures;  // that it can run
    std::vector<std::string> formats;        // of weights that it can read
    Epoch epoch_obeyed;                      // largest term it ever obeyed, and that plan's number
    std::string listen_address;              // host:port for its neighbours
    HeldStage held;
    std::uint64_t process = 0;  // random: tells two processes of one name apart
};
/// Both ways, every half second. `progress` grows while a step is computed, so a slow step differs
/// from a stuck one.
struct Heartbeat {
    Epoch epoch;
    std::uint64_t progress = 0;
};
/// Worker -> coordinator: my link to `peer` is broken or silent.
struct PeerLost {
    Epoch epoch;
    NodeId peer;
    std::string reason;
};

// ---- plan ----

enum class StateType : std::uint8_t { F16 = 0, F32 = 1 };
enum class StateKind : std::uint8_t { Paged = 0, Windowed = 1, Slot = 2 };

/// Layers whose state is of one kind and window. In a Slot group a page is the state of a whole
/// sequence, and page 0 of its table is the slot.
struct StateGroup {
    StateKind kind = StateKind::Paged;
    std::uint32_t window = 0;      // positions kept; Windowed only
    std::uint32_t page_count = 0;  // ids are [0, page_count) on every stage
};
/// Coordinator -> worker: hold this. Replaces whatever was held; the weights of a part that stays
/// the same need not be loaded again.
struct AssignStage {
    Epoch epoch;
    Hash128 model;  // digest of the model's index
    std::string model_name;
    std::uint64_t model_bytes = 0;
    LayerRange layers;
    std::uint32_t layer_count = 0;  // of the whole model
    bool has_input = false;
    bool has_output = false;
    std::uint32_t vocabulary_size = 0;
    std::uint32_t context = 0;   // largest position + 1
    std::uint32_t rows_max = 0;  // in one step
    std::uint32_t sequences_max = 0;
    std::uint32_t row_bytes = 0;  // of activations, between stages
    StateType state_type = StateType::F16;
    std::vector<StateGroup> groups;
    std::uint64_t memory_bytes = 0;  // what the planner counted for this stage
    NodeId previous;                 // none for the first stage
    NodeId next;                     // none for the last stage
    std::string next_address;
};
struct LoadProgress {
    Epoch epoch;
    std::uint64_t bytes_done = 0;
    std::uint64_t bytes_total = 0;
};
struct StageReady {
    Epoch epoch;
};
enum class StageRefusal : std::uint8_t {
    OldEpoch = 0,  // the worker obeys a newer term
    NotEnoughMemory = 1,
    Unsupported = 2,    // architecture, format or operation
    BadAssignment = 3,  // makes no sense
    LoadFailed = 4,     // disk, hash, stream
    DeviceFailed = 5,
    BadStep = 6,  // StepFailed only: rows that make no sense, or a value that is not finite
};
/// Worker -> coordinator: I do not (any longer) hold the stage of `epoch`.
struct StageRefused {
    Epoch epoch;
    StageRefusal reason = StageRefusal::BadAssignment;
    std::string message;
    std::uint64_t bytes_needed = 0;  // NotEnoughMemory
    std::uint64_t bytes_available = 0;
    Epoch epoch_obeyed;  // OldEpoch
};
/// Coordinator -> worker: drop the stage, keep nothing but the cache.
struct UnloadStage {
    Epoch epoch;
};
/// Worker -> coordinator: I am told to stop; plan without me. Coordinator -> worker: as you wish.
struct Drain {
    std::string reason;
};

// ---- weights ----

enum class ModelPart : std::uint8_t { Index = 0, Tensor = 1, Manifest = 2 };
/// Bytes of a model: of its index (metadata and tensor table as in the file), of one tensor's data
/// by its number in the index, or of the manifest (a Hash128 a tensor).
struct WeightsRange {
    ModelPart part = ModelPart::Index;
    std::uint32_t tensor = 0;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;  // at most kChunkBytesMax; 0 asks only for bytes_total
    friend auto operator<=>(const WeightsRange&, const WeightsRange&) = default;
};
struct WeightsRequest {
    Epoch epoch;
    Hash128 model;
    WeightsRange range;
};
/// The answer; payload: the bytes. `error` is empty unless they cannot be had. `bytes_total` is the
/// size of the whole part, `hash` that of the payload.
struct WeightsChunk {
    Epoch epoch;
    Hash128 model;
    WeightsRange range;
    std::uint64_t bytes_total = 0;
    Hash128 hash;
    std::string error;
    SharedBytes payload;
};

// ---- steps ----

struct TokenBias {
    TokenId token = 0;
    float bias = 0;
};
struct TokenCount {
    TokenId token = 0;
    std::uint32_t in_prompt = 0;
    std::uint32_t generated = 0;
};
/// How to draw tokens; the meaning of each is engine/sampler.hpp's.
struct SamplingParameters {
    float temperature = 1.0F;
    std::uint32_t top_k = 0;
    float top_p = 1.0F;
    float min_p = 0.0F;
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
    float repetition_penalty = 1.0F;
    std::uint64_t seed = 0;
    std::uint32_t choice = 0;
    bool wants_logprob = false;
    std::uint32_t top_logprobs = 0;
    std::vector<TokenBias> logit_bias;
};
/// Goes with a sequence's first sampling row in an epoch; the last stage keeps it and counts its
/// own samples until the sequence is dropped.
struct SamplingSetup {
    SamplingParameters parameters;
    std::vector<TokenCount> counts;
};
/// `pages` stand at indices first_index, first_index + 1 ... of the sequence's table in `group`
/// (index = position / 64); entries below `first_valid` are gone.
struct PageTableChange {
    GroupIndex group;
    SequenceId sequence;
    std::uint32_t first_valid = 0;
    std::uint32_t first_index = 0;
    std::vector<PageId> pages;
};
/// Consecutive positions of one sequence, one row each.
struct StepRun {
    SequenceId sequence;
    std::uint32_t first_position = 0;
    std::vector<TokenId> tokens;
    bool wants_logits = false;              // of every row
    bool samples = false;                   // the last row draws the token that follows it
    std::optional<SamplingSetup> sampling;  // only where `samples`
};
/// One batch going once through all stages. Rows are those of the runs, in their order. Changes of
/// the page tables hold from this step on; `drops` are forgotten before it runs.
/// Every step up to `returned_through` has come back to the coordinator, so a stage need not keep
/// what it sent for them. Payload: activations, (rows, row_bytes); empty into the first stage.
struct Step {
    Epoch epoch;
    StepNumber number;
    StepNumber returned_through;
    Lane lane = Lane::Decode;
    std::vector<PageTableChange> page_changes;
    std::vector<SequenceId> drops;
    std::vector<StepRun> runs;
    SharedBytes activations;
};
struct TokenLogprob {
    TokenId token = 0;
    float logprob = 0;
};
struct SampledToken {
    SequenceId sequence;
    std::uint32_t position = 0;  // of the new token
    TokenId token = 0;
    float logprob = 0;
    std::vector<TokenLogprob> top_logprobs;
};
/// Last stage -> coordinator, before the StepResult, on the lane of the step: whole logits of rows
/// [first_row, first_row + row_count) of those that want them. Payload: f32, (rows, vocabulary).
struct StepLogits {
    Epoch epoch;
    StepNumber number;
    Lane lane = Lane::Decode;
    std::uint32_t first_row = 0;
    std::uint32_t row_count = 0;
    SharedBytes payload;
};
/// Last stage -> coordinator: the step has been through all stages. Tokens in the order of the
/// runs.
struct StepResult {
    Epoch epoch;
    StepNumber number;
    Lane lane = Lane::Decode;
    std::vector<SampledToken> tokens;
};
/// Any stage -> coordinator: the step cannot be computed (device lost, bad row, value not finite).
struct StepFailed {
    Epoch epoch;
    StepNumber number;
    StageRefusal reason = StageRefusal::DeviceFailed;
    std::string message;
};

/// The index in this list is the message's type on the wire (codec.hpp), so new ones go to the end.
using Message = std::variant<WorkerReport, Heartbeat, PeerLost, AssignStage, LoadProgress,
                             StageReady, StageRefused, UnloadStage, Drain, WeightsRequest,
                             WeightsChunk, Step, StepLogits, StepResult, StepFailed>;

/// The lane that `message` travels on.
Lane lane_of(const Message& message);
/// "Step", "StageReady" ...: for logs and traces.
const char* name_of(const Message& message);
/// The same by index in the variant, which must be in range.
const char* name_of_type(std::size_t type);
/// The epoch that `message` carries; {0, 0} where it has none.
Epoch epoch_of(const Message& message);
/// Rows of a step: the sum over its runs.
std::uint64_t row_count(const Step& step);

}  // namespace artel::protocol
