// SPDX-License-Identifier: Apache-2.0
#include "protocol/messages.hpp"

namespace artel::protocol {

namespace {

// Names by index of the variant; the assertion catches a message without one.
constexpr const char* kNames[] = {"WorkerReport", "Heartbeat",      "PeerLost",     "AssignStage",
                                  "LoadProgress", "StageReady",     "StageRefused", "UnloadStage",
                                  "Drain",        "WeightsRequest", "WeightsChunk", "Step",
                                  "StepLogits",   "StepResult",     "StepFailed"};
static_assert(std::size(kNames) == std::variant_size_v<Message>);

struct LaneOf {
    Lane operator()(const Step& step) const { return step.lane; }
    Lane operator()(const StepLogits& logits) const { return logits.lane; }
    Lane operator()(const StepResult& result) const { return result.lane; }
    Lane operator()(const WeightsRequest&) const { return Lane::Weights; }
    Lane operator()(const WeightsChunk&) const { return Lane::Weights; }
    template <class Other>
    Lane operator()(const Other&) const {
        return Lane::Control;
    }
};

}  // namespace

Lane lane_of(const Message& message) {
    return std::visit(LaneOf{}, message);
}

const char* name_of(const Message& message) {
    return kNames[message.index()];
}

const char* name_of_type(std::size_t type) {
    return kNames[type];
}

Epoch epoch_of(const Message& message) {
    return std::visit(
        [](const auto& m) {
            if constexpr (requires { m.epoch; }) {
                return m.epoch;
            } else {
                return Epoch{};
            }
        },
        message);
}

std::uint64_t row_count(const Step& step) {
    std::uint64_t rows = 0;
    for (const StepRun& run : step.runs) rows += run.tokens.size();
    return rows;
}

}  // namespace artel::protocol
