// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_profile.hpp"

#include <algorithm>
#include <set>

#include "models/architecture.hpp"
#include "quant/formats.hpp"
#include "quant/type_names.hpp"

namespace artel::runtime {
namespace {

cluster::EndProfile end_profile(const models::PartDescription& part) {
    return {.weight_bytes = part.weight_bytes,
            .active_bytes = part.row_cost.weight_bytes,
            .flops_per_token = part.row_cost.flops,
            .scratch_bytes = 0};
}

cluster::LayerProfile layer_profile(const models::PartDescription& part,
                                    const models::ModelShape& shape) {
    cluster::LayerProfile layer{.weight_bytes = part.weight_bytes,
                                .active_bytes = part.row_cost.weight_bytes,
                                .flops_per_token = part.row_cost.flops,
                                .states = {}};
    for (const models::StateUse& use : part.state) {
        const bool is_slot = shape.state_groups[use.group].kind == graph::StateKind::Slot;
        layer.states.push_back({use.group, is_slot ? use.bytes_per_sequence : use.bytes_per_token});
    }
    return layer;
}

protocol::StateKind state_kind(graph::StateKind kind) {
    switch (kind) {
        case graph::StateKind::Paged:
            return protocol::StateKind::Paged;
        case graph::StateKind::Windowed:
            return protocol::StateKind::Windowed;
        case graph::StateKind::Slot:
            return protocol::StateKind::Slot;
    }
    return protocol::StateKind::Paged;
}

std::uint64_t shared_bytes(const models::ModelDescription& description) {
    std::uint64_t shared = 0;
    for (const models::TensorUse& out : description.output.tensors)
        for (const models::TensorUse& in : description.input.tensors)
            if (in.name == out.name) shared += in.bytes;
    return shared;
}

}  // namespace

cluster::ModelProfile model_profile(const std::string& name, const gguf::GgufIndex& index,
                                    const protocol::Hash128& digest,
                                    const models::ModelDescription& description,
                                    std::uint32_t rows_max) {
    cluster::ModelProfile profile;
    profile.name = name;
    profile.digest = digest;
    for (const gguf::Shard& shard : index.shards()) profile.file_bytes += shard.file_bytes;
    profile.architecture = description.architecture;
    std::set<std::string> formats;
    const auto add_formats = [&](const models::PartDescription& part) {
        for (const models::TensorUse& use : part.tensors)
            if (const gguf::TensorInfo* tensor = index.find_tensor(use.name))
                formats.insert(quant::describe_type(tensor->type_id));
    };
    std::uint64_t scratch_per_row = 0;
    for (const models::PartDescription& layer : description.layers) {
        profile.layers.push_back(layer_profile(layer, description.shape));
        scratch_per_row = std::max(scratch_per_row, layer.scratch_bytes_per_row);
        add_formats(layer);
    }
    add_formats(description.input);
    add_formats(description.output);
    profile.formats.assign(formats.begin(), formats.end());
    for (const graph::StateGroupSpec& group : description.shape.state_groups)
        profile.groups.push_back({state_kind(group.kind), group.window});
    profile.input = end_profile(description.input);
    profile.output = end_profile(description.output);
    profile.output.scratch_bytes =
        std::uint64_t{rows_max} *
        (description.output.scratch_bytes_per_row + 4ULL * description.shape.vocabulary_size);
    profile.shared_end_bytes = shared_bytes(description);
    profile.row_bytes = description.shape.width * 4;
    // Scratch of a layer, activations in and out, and a floor for code, stacks and connections.
    constexpr std::uint64_t kFloorBytes = 32ULL << 20;
    profile.scratch_bytes = kFloorBytes + rows_max * (scratch_per_row + 4ULL * profile.row_bytes);
    profile.context_max = description.shape.context_length;
    profile.vocabulary_size = description.shape.vocabulary_size;
    profile.state_type = description.state_type == graph::StateType::F16 ? protocol::StateType::F16
                                                                         : protocol::StateType::F32;
    return profile;
}

std::vector<std::string> architecture_names() {
    std::vector<std::string> names;
    for (const models::Architecture& architecture : models::all_architectures())
        names.emplace_back(architecture.name);
    return names;
}

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const quant::TypeName& type : quant::all_type_names())
        if (quant::find_format(type.gguf_id)) names.emplace_back(type.name);
    return names;
}

}  // namespace artel::runtime
