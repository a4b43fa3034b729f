// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_profile.hpp"

#include <algorithm>
#include <set>

#include "backends/registry.hpp"
#include "models/architecture.hpp"
#include "quant/formats.hpp"
#include "quant/type_names.hpp"

namespace artel::runtime {
namespace {

/// How the CPU backend holds a model: re-laid, which makes some formats larger than in the file.
class Layouts {
  public:
    explicit Layouts(const gguf::GgufIndex& index)
        : index_(index), backend_(backends::create_backend("cpu", {})) {}

    std::uint64_t held_bytes(const models::TensorUse& use) const {
        const gguf::TensorInfo* const tensor = index_.find_tensor(use.name);
        const auto format = tensor != nullptr ? quant::find_format(tensor->type_id) : std::nullopt;
        if (!format || !backend_.ok()) return use.bytes;
        const auto layout = (*backend_)->layout(*format, tensor->rows(), tensor->columns());
        return layout.ok() ? layout->bytes : use.bytes;
    }

  private:
    const gguf::GgufIndex& index_;
    Result<std::unique_ptr<backends::Backend>> backend_;
};

struct HeldWeights {
    std::uint64_t bytes = 0;
    std::uint64_t active_bytes = 0;  // of them that one row reads
};

HeldWeights held_weights(const Layouts& layouts, const models::PartDescription& part) {
    HeldWeights held;
    for (const models::TensorUse& use : part.tensors) held.bytes += layouts.held_bytes(use);
    held.active_bytes = part.row_cost.weight_bytes;
    if (part.weight_bytes > 0)
        held.active_bytes = static_cast<std::uint64_t>(static_cast<double>(held.active_bytes) *
                                                       static_cast<double>(held.bytes) /
                                                       static_cast<double>(part.weight_bytes));
    return held;
}

cluster::EndProfile end_profile(const Layouts& layouts, const models::PartDescription& part) {
    const HeldWeights held = held_weights(layouts, part);
    return {.weight_bytes = held.bytes,
            .active_bytes = held.active_bytes,
            .flops_per_token = part.row_cost.flops,
            .scratch_bytes = 0};
}

cluster::LayerProfile layer_profile(const Layouts& layouts, const models::PartDescription& part,
                                    const models::ModelShape& shape) {
    const HeldWeights held = held_weights(layouts, part);
    cluster::LayerProfile layer{.weight_bytes = held.bytes,
                                .active_bytes = held.active_bytes,
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

std::uint64_t shared_bytes(const Layouts& layouts, const models::ModelDescription& description) {
    std::uint64_t shared = 0;
    for (const models::TensorUse& out : description.output.tensors)
        for (const models::TensorUse& in : description.input.tensors)
            if (in.name == out.name) shared += layouts.held_bytes(in);
    return shared;
}

}  // namespace

cluster::ModelProfile model_profile(const std::string& name, const gguf::GgufIndex& index,
                                    const protocol::Hash128& digest,
                                    const models::ModelDescription& description,
                                    std::uint32_t rows_max) {
    const Layouts layouts(index);
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
        profile.layers.push_back(layer_profile(layouts, layer, description.shape));
        scratch_per_row = std::max(scratch_per_row, layer.scratch_bytes_per_row);
        add_formats(layer);
    }
    add_formats(description.input);
    add_formats(description.output);
    profile.formats.assign(formats.begin(), formats.end());
    for (const graph::StateGroupSpec& group : description.shape.state_groups)
        profile.groups.push_back({state_kind(group.kind), group.window});
    profile.input = end_profile(layouts, description.input);
    profile.output = end_profile(layouts, description.output);
    profile.output.scratch_bytes =
        std::uint64_t{rows_max} *
        (description.output.scratch_bytes_per_row + 4ULL * description.shape.vocabulary_size);
    profile.shared_end_bytes = shared_bytes(layouts, description);
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
