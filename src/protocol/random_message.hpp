// SPDX-License-Identifier: Apache-2.0
// For tests only: messages of every type with random content that the codec takes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "protocol/limits.hpp"
#include "protocol/messages.hpp"

namespace artel::protocol::random_message {

std::uint32_t below(Random& random, std::uint64_t bound) {
    return static_cast<std::uint32_t>(random.below(bound));
}
inline std::string text(Random& random) {
    std::string text(1 + random.below(20), ' ');
    for (char& c : text) c = static_cast<char>('a' + random.below(26));
    return text;
}
inline Epoch epoch(Random& random) {
    return {random.next(), random.below(1000)};
}
inline Hash128 hash(Random& random) {
    return {random.next(), random.next()};
}
SharedBytes bytes(Random& random, std::size_t count) {
    std::vector<std::byte> made(count);
    for (auto& b : made) b = static_cast<std::byte>(random.below(256));
    return SharedBytes(std::move(made));
}
inline float number(Random& random) {
    return static_cast<float>(random.unit() * 4 - 2);
}
inline bool coin(Random& random) {
    return random.chance(0.5);
}
inline Lane step_lane(Random& random) {
    return coin(random) ? Lane::Decode : Lane::Prefill;
}
inline WeightsRange range(Random& random) {
    return {static_cast<ModelPart>(random.below(3)), below(random, 1000), random.next() >> 1U,
            below(random, kChunkBytesMax + 1)};
}
inline SamplingSetup sampling(Random& random) {
    SamplingSetup setup;
    SamplingParameters& p = setup.parameters;
    p = {number(random),   below(random, 100), number(random),    number(random),
         number(random),   number(random),     number(random),    random.next(),
         below(random, 9), coin(random),       below(random, 21), {}};
    for (std::uint64_t i = random.below(5); i > 0; --i)
        p.logit_bias.push_back({below(random, kVocabularyMax), number(random)});
    for (std::uint64_t i = random.below(5); i > 0; --i)
        setup.counts.push_back({below(random, kVocabularyMax), below(random, 9), below(random, 9)});
    return setup;
}
inline StepRun run(Random& random) {
    StepRun run;
    run.sequence = SequenceId{random.next() | 1U};
    run.first_position = below(random, kPositionsMax);
    for (std::uint64_t i = 1 + random.below(20); i > 0; --i)
        run.tokens.push_back(below(random, kVocabularyMax));
    run.wants_logits = coin(random);
    run.samples = coin(random);
    if (run.samples && coin(random)) run.sampling = sampling(random);
    return run;
}
inline PageTableChange page_change(Random& random) {
    PageTableChange change{GroupIndex{below(random, kGroupsMax)},
                           SequenceId{random.next() | 1U},
                           below(random, 1000),
                           below(random, 1000),
                           {}};
    for (std::uint64_t i = random.below(5); i > 0; --i)
        change.pages.push_back(PageId{below(random, kPagesMax)});
    return change;
}
// Long because it is flat: one case a message.
inline Message make(std::size_t type, Random& random) {
    switch (type) {
        case 0: {
            WorkerReport report{text(random),       text(random), text(random), random.next(),
                                below(random, 100), {},           {},           {},
                                epoch(random),      text(random), {},           random.next()};
            report.devices.push_back(
                {text(random), random.next(), random.next(), random.next(), text(random)});
            report.architectures = {text(random), text(random)};
            report.formats = {text(random)};
            report.held = {
                epoch(random), {below(random, 99), below(random, 99)}, hash(random), coin(random)};
            return report;
        }
        case 1:
            return Heartbeat{epoch(random), random.next()};
        case 2:
            return PeerLost{epoch(random), NodeId{random.next() | 1U}, text(random)};
        case 3: {
            AssignStage assign;
            assign.epoch = epoch(random);
            assign.model = hash(random);
            assign.model_name = text(random);
            assign.model_bytes = random.next();
            assign.layers = {below(random, 99), below(random, 99)};
            assign.layer_count = below(random, kLayersMax + 1);
            assign.has_input = coin(random);
            assign.has_output = coin(random);
            assign.vocabulary_size = below(random, kVocabularyMax + 1);
            assign.context = below(random, kPositionsMax + 1);
            assign.rows_max = below(random, kRowsMax + 1);
            assign.sequences_max = below(random, kRunsMax + 1);
            assign.row_bytes = below(random, kRowBytesMax + 1);
            assign.state_type = coin(random) ? StateType::F16 : StateType::F32;
            for (std::uint64_t i = random.below(4); i > 0; --i)
                assign.groups.push_back({static_cast<StateKind>(random.below(3)),
                                         below(random, 5000), below(random, kPagesMax + 1)});
            assign.memory_bytes = random.next();
            assign.previous = NodeId{random.next()};
            assign.next = NodeId{random.next()};
            assign.next_address = text(random);
            return assign;
        }
        case 4:
            return LoadProgress{epoch(random), random.below(1000), 1000};
        case 5:
            return StageReady{epoch(random)};
        case 6:
            return StageRefused{epoch(random), static_cast<StageRefusal>(random.below(7)),
                                text(random),  random.next(),
                                random.next(), epoch(random)};
        case 7:
            return UnloadStage{epoch(random)};
        case 8:
            return Drain{text(random)};
        case 9:
            return WeightsRequest{epoch(random), hash(random), range(random)};
        case 10: {
            WeightsChunk chunk{epoch(random),
                               hash(random),
                               range(random),
                               random.next(),
                               hash(random),
                               coin(random) ? "" : text(random),
                               {}};
            chunk.payload = bytes(random, std::min<std::size_t>(chunk.range.bytes, 3000));
            return chunk;
        }
        case 11: {
            Step step;
            step.epoch = epoch(random);
            step.number = StepNumber{random.next() | 1U};
            step.returned_through = StepNumber{random.next()};
            step.lane = step_lane(random);
            for (std::uint64_t i = random.below(4); i > 0; --i)
                step.page_changes.push_back(page_change(random));
            for (std::uint64_t i = random.below(4); i > 0; --i)
                step.drops.push_back(SequenceId{random.next() | 1U});
            for (std::uint64_t i = 1 + random.below(4); i > 0; --i)
                step.runs.push_back(run(random));
            step.activations = bytes(random, random.below(5000));
            return step;
        }
        case 12:
            return StepLogits{epoch(random),          StepNumber{random.next() | 1U},
                              step_lane(random),      below(random, 100),
                              1 + below(random, 100), bytes(random, 400)};
        case 13: {
            StepResult result{epoch(random), StepNumber{random.next() | 1U}, step_lane(random), {}};
            for (std::uint64_t i = random.below(4); i > 0; --i)
                result.tokens.push_back({SequenceId{random.next() | 1U},
                                         below(random, kPositionsMax),
                                         below(random, kVocabularyMax),
                                         number(random),
                                         {{below(random, kVocabularyMax), number(random)}}});
            return result;
        }
        case 14:
            return StepFailed{epoch(random), StepNumber{random.next() | 1U},
                              static_cast<StageRefusal>(random.below(7)), text(random)};
        default:
            return Heartbeat{};
    }
}
static_assert(std::variant_size_v<Message> == 15, "make() above must make the new message too");

}  // namespace artel::protocol::random_message
