// SPDX-License-Identifier: Apache-2.0
// What the planner knows: the model (from a dry run over its index), the machines (from their own
// probes) and the links. Plain numbers; nothing here knows tensors or files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/environment.hpp"
#include "protocol/messages.hpp"

namespace artel::cluster {

/// State that one layer keeps in one group.
struct LayerState {
    std::uint32_t group = 0;
    std::uint64_t bytes = 0;  // a position (Paged, Windowed) or a sequence (Slot)
};
struct LayerProfile {
    std::uint64_t weight_bytes = 0;
    std::uint64_t active_bytes = 0;  // of weights read for one token
    std::uint64_t flops_per_token = 0;
    std::vector<LayerState> states;
};
/// The embedding or the head, which go to the first or last stage.
struct EndProfile {
    std::uint64_t weight_bytes = 0;
    std::uint64_t active_bytes = 0;
    std::uint64_t flops_per_token = 0;
    std::uint64_t scratch_bytes = 0;  // beyond that of layers, e.g. logits of a step's rows
};
struct GroupProfile {
    protocol::StateKind kind = protocol::StateKind::Paged;
    std::uint32_t window = 0;
};
struct ModelProfile {
    std::string name;
    protocol::Hash128 digest;  // of the index
    std::uint64_t file_bytes = 0;
    std::string architecture;
    std::vector<std::string> formats;  // of weights, by name
    std::vector<LayerProfile> layers;
    std::vector<GroupProfile> groups;
    EndProfile input;
    EndProfile output;
    std::uint64_t shared_end_bytes = 0;  // tied weights: held once where one stage has both ends
    std::uint64_t scratch_bytes = 0;     // compute buffers of any stage at rows_max
    std::uint32_t context_max = 0;
    std::uint32_t vocabulary_size = 0;
    std::uint32_t row_bytes = 0;  // of activations between stages
    protocol::StateType state_type = protocol::StateType::F16;
};

struct WorkerProfile {
    NodeId node;
    std::string name;
    std::string machine_id;                  // empty: a machine of its own
    std::uint64_t memory_bytes = 0;          // of this worker
    std::uint64_t machine_memory_bytes = 0;  // of all workers of the machine; 0: no such limit
    std::uint64_t bandwidth_bytes_per_second = 0;  // reached by kernels (after efficiency)
    std::uint64_t flops_per_second = 0;
    std::string arithmetic_class;
    std::string unusable;      // empty, or why no layer may be placed here
    std::uint64_t hop_ns = 0;  // to hand one row to the next stage
};

/// The planner's view of a worker that has reported: its first device, and whether it can run
/// `model`.
WorkerProfile worker_profile(const protocol::WorkerReport& report, const ModelProfile& model);

/// Workers of one machine with alike devices get one measured rate, the best of theirs: they probed
/// at the same time and in each other's way, and the difference says nothing.
void even_out_twins(std::vector<WorkerProfile>& workers);

}  // namespace artel::cluster
