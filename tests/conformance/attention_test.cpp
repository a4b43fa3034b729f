// SPDX-License-Identifier: Apache-2.0
// StoreState and Attention over pages, against the reference: both state types, shared kv heads,
// windows, several sequences with scattered pages, state that grew over several steps.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "conformance/session.hpp"

namespace artel::conformance {
namespace {

using graph::GraphBuilder;
using graph::LayerState;
using graph::Tensor;

struct AttentionCase {
    const char* name;
    LayerState layer;
    std::uint32_t heads;
    std::uint32_t window;  // 0: paged
    float softcap;
    bool has_sinks = false;
};
constexpr AttentionCase kCases[] = {
    {"plain", {1, 64, 64}, 1, 0, 0},        {"shared", {3, 64, 64}, 9, 0, 0},
    {"odd", {2, 20, 12}, 6, 0, 0},          {"window1", {1, 8, 8}, 2, 1, 0},
    {"window20", {2, 16, 24}, 4, 20, 0},    {"window64", {1, 32, 32}, 1, 64, 0},
    {"window100", {1, 32, 32}, 4, 100, 0},  {"capped", {1, 40, 40}, 2, 0, 5},
    {"latent", {1, 48, 32, true}, 4, 0, 0}, {"latent_odd", {2, 21, 13, true}, 4, 0, 0},
    {"sinks", {2, 32, 32}, 6, 0, 0, true},  {"sinks_window", {1, 16, 16}, 4, 20, 0, true},
};

/// Two layers, so that a page has more than one part.
graph::Graph attention_graph(const AttentionCase& c, const TestWeights& weights,
                             graph::StateType type) {
    const graph::StateGroupSpec group{
        .kind = c.window > 0 ? graph::StateKind::Windowed : graph::StateKind::Paged,
        .window = c.window};
    // An empty group comes first: groups are numbered as in the whole model.
    return build_graph(weights, {{}, group}, type, [&](GraphBuilder& g) {
        const Tensor query = g.input(std::uint64_t{c.heads} * c.layer.key_dim);
        const Tensor keys = g.input(std::uint64_t{c.layer.kv_head_count} * c.layer.key_dim);
        const Tensor values = g.input(std::uint64_t{c.layer.kv_head_count} * c.layer.value_dim);
        graph::AttentionOptions options{.head_count = c.heads,
                                        .scale = 1 / std::sqrt(float(c.layer.key_dim)),
                                        .softcap = c.softcap};
        if (c.has_sinks) options.sinks = g.vector("sinks", c.heads);
        for (int layer = 0; layer < 2; ++layer) {
            const graph::StateSlot slot = g.add_layer_state(1, c.layer);
            g.store_state(slot, layer == 0 ? keys : g.scale(keys, -1), values);
            g.output(g.attention(slot, query, options));
        }
    });
}

/// Rows [first, first + count) of a sequence, whose pages are `stride` apart from `offset` on. The
/// inputs of a row depend on sequence and position alone.
void append_rows(TestStep& step, const graph::Graph& graph, std::uint32_t sequence,
                 std::uint32_t first, std::uint32_t count) {
    if (step.inputs.empty()) step.inputs.resize(graph.inputs.size());
    for (std::uint32_t position = first; position < first + count; ++position) {
        step.positions.push_back(position);
        step.sequences.push_back(sequence);
        for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
            Random random(sequence * 1'000'003 + position * 17 + i);
            for (float& x : random_floats(random, graph.shape(graph.inputs[i]).columns))
                step.inputs[i].push_back(3 * x);
        }
    }
}

/// The table of a sequence up to position `end` of a group, without pages that a window has passed.
TestStep::Table table_of(std::uint32_t sequence, std::uint32_t first, std::uint32_t end,
                         std::uint32_t window) {
    TestStep::Table table;
    table.first_page = graph::first_visible(first, window) / graph::kPageTokens;
    for (std::uint32_t i = table.first_page; i <= (end - 1) / graph::kPageTokens; ++i)
        table.pages.push_back((7 * (4 * sequence + i % 4) + 5) % kTestPages);
    return table;
}

using Param = std::tuple<Subject, graph::StateType, AttentionCase>;

class AttentionOverPages : public testing::TestWithParam<Param> {};

TEST_P(AttentionOverPages, IsTheReferences) {
    const auto& [subject, type, c] = GetParam();
    TestWeights weights(0);
    weights.add_vector("sinks", c.heads);
    const graph::Graph graph = attention_graph(c, weights, type);
    Session reference(reference_subject(), graph, weights);
    Session session(subject, graph, weights);
    struct Part {
        std::uint32_t first, count;
    };
    // Steps of three sequences; a count of 0 leaves a sequence out.
    const Part steps[][3] = {{{0, 1}, {0, 33}, {0, 30}},    {{1, 62}, {33, 1}, {30, 0}},
                             {{63, 2}, {34, 30}, {30, 1}},  {{65, 60}, {64, 1}, {31, 3}},
                             {{125, 7}, {65, 0}, {34, 57}}, {{132, 1}, {65, 1}, {91, 1}}};
    for (const auto& parts : steps) {
        TestStep step;
        for (std::uint32_t sequence = 0; sequence < 3; ++sequence) {
            const Part& part = parts[sequence];
            append_rows(step, graph, sequence, part.first, part.count);
            step.tables.push_back({});  // of the empty group
            step.tables.push_back(part.count == 0 ? TestStep::Table{}
                                                  : table_of(sequence, part.first,
                                                             part.first + part.count, c.window));
        }
        const Outputs expected = reference.run(step);
        const Outputs actual = session.run(step);
        // Values are below 3; scores have |terms| up to 9 sqrt(key_dim).
        for (std::size_t i = 0; i < actual.size(); ++i)
            expect_near(actual[i], expected[i], std::vector<float>(actual[i].size(), 3.0F));
    }
    // State is rounded by one rule and has one layout: the pages are the same bytes.
    EXPECT_EQ(session.state(1), reference.state(1));
}

std::string param_name(const testing::TestParamInfo<Param>& info) {
    const AttentionCase& c = std::get<2>(info.param);
    const bool is_f16 = std::get<1>(info.param) == graph::StateType::F16;
    return fmt::format("{}_{}_{}", c.name, is_f16 ? "f16" : "f32", std::get<0>(info.param).name());
}

INSTANTIATE_TEST_SUITE_P(Conformance, AttentionOverPages,
                         testing::Combine(testing::ValuesIn(subjects()),
                                          testing::Values(graph::StateType::F16,
                                                          graph::StateType::F32),
                                          testing::ValuesIn(kCases)),
                         param_name);

}  // namespace
}  // namespace artel::conformance
