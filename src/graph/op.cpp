// SPDX-License-Identifier: Apache-2.0
#include "graph/op.hpp"

#include <fmt/core.h>

namespace artel::graph {

std::string to_string(const Shape& shape) {
    switch (shape.row_kind) {
        case RowKind::Fixed:
            return fmt::format("({}, {})", shape.rows, shape.columns);
        case RowKind::Step:
            return fmt::format("(R, {})", shape.columns);
        case RowKind::Logits:
            return fmt::format("(L, {})", shape.columns);
    }
    __builtin_unreachable();
}

std::string_view op_name(const Op& op) {
    constexpr Overloaded kName{
        [](const EmbedRows&) { return "EmbedRows"; },
        [](const RmsNorm&) { return "RmsNorm"; },
        [](const MatMul&) { return "MatMul"; },
        [](const Rope&) { return "Rope"; },
        [](const StoreState&) { return "StoreState"; },
        [](const Attention&) { return "Attention"; },
        [](const Add&) { return "Add"; },
        [](const Multiply&) { return "Multiply"; },
        [](const Scale&) { return "Scale"; },
        [](const GatedActivation&) { return "GatedActivation"; },
        [](const SelectRows&) { return "SelectRows"; },
        [](const SoftCap&) { return "SoftCap"; },
        [](const LayerNorm&) { return "LayerNorm"; },
        [](const Activate&) { return "Activate"; },
        [](const RoutedExperts&) { return "RoutedExperts"; },
        [](const HeadMatMul&) { return "HeadMatMul"; },
        [](const SliceHeads&) { return "SliceHeads"; },
        [](const JoinHeads&) { return "JoinHeads"; },
    };
    return std::visit(kName, op);
}

OpTensors op_tensors(const Op& op) {
    constexpr Overloaded kTensors{
        [](const EmbedRows& o) -> OpTensors {
            return {{o.weight}, o.out, {}};
        },
        [](const RmsNorm& o) -> OpTensors {
            return {{o.x, o.weight}, o.out, {}};
        },
        [](const MatMul& o) -> OpTensors {
            return {
                {o.x, o.weight, o.scale.value_or(Tensor{}), o.bias.value_or(Tensor{})}, o.out, {}};
        },
        [](const Rope& o) -> OpTensors {
            return {{o.x, o.factors.value_or(Tensor{})}, o.out, {}};
        },
        [](const StoreState& o) -> OpTensors {
            return {{o.keys, o.values}, {}, {}};
        },
        [](const Attention& o) -> OpTensors {
            return {{o.query, o.sinks.value_or(Tensor{})}, o.out, {}};
        },
        [](const Add& o) -> OpTensors {
            return {{o.a, o.b}, o.out, {}};
        },
        [](const Multiply& o) -> OpTensors {
            return {{o.a, o.b}, o.out, {}};
        },
        [](const Scale& o) -> OpTensors {
            return {{o.x}, o.out, {}};
        },
        [](const GatedActivation& o) -> OpTensors {
            return {{o.gate, o.up}, o.out, {}};
        },
        [](const SelectRows& o) -> OpTensors {
            return {{o.x}, o.out, {}};
        },
        [](const SoftCap& o) -> OpTensors {
            return {{o.x}, o.out, {}};
        },
        [](const LayerNorm& o) -> OpTensors {
            return {{o.x, o.weight, o.bias.value_or(Tensor{})}, o.out, {}};
        },
        [](const Activate& o) -> OpTensors {
            return {{o.x}, o.out, {}};
        },
        [](const HeadMatMul& o) -> OpTensors {
            return {{o.x, o.weight}, o.out, o.room};
        },
        [](const SliceHeads& o) -> OpTensors {
            return {{o.x}, o.out, {}};
        },
        [](const JoinHeads& o) -> OpTensors {
            return {{o.a, o.b}, o.out, {}};
        },
        [](const RoutedExperts& o) -> OpTensors {
            constexpr Tensor kNone;
            return {{o.x, o.logits, o.selection_bias.value_or(kNone), o.gate, o.up, o.down,
                     o.gate_bias.value_or(kNone), o.up_bias.value_or(kNone),
                     o.down_bias.value_or(kNone)},
                    o.out,
                    o.room};
        },
    };
    return std::visit(kTensors, op);
}

}  // namespace artel::graph
