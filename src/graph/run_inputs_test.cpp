// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "graph/graph_test_weights.hpp"

namespace artel::graph {
namespace {

using testing::HasSubstr;

/// A step that owns what RunInputs borrows; sound as it is made: two sequences, three rows.
struct OwnedStep {
    std::vector<std::uint32_t> positions{63, 64, 0};
    std::vector<std::uint32_t> sequences{0, 0, 1};
    std::vector<std::uint32_t> tokens{1, 99, 0};
    std::vector<std::uint32_t> logit_rows{1, 2};
    std::vector<std::uint32_t> first_pages{0, 0};
    std::vector<std::vector<std::uint32_t>> pages{{4, 2}, {0}};
    std::vector<std::vector<float>> inputs;
    std::vector<std::size_t> output_sizes{2 * 100};

    Error check(const Graph& graph) const {
        std::vector<PageTable> tables;
        for (std::size_t i = 0; i < pages.size(); ++i) tables.push_back({first_pages[i], pages[i]});
        std::vector<std::vector<float>> outputs;
        for (const std::size_t size : output_sizes) outputs.emplace_back(size);
        const std::vector<std::span<const float>> input_spans(inputs.begin(), inputs.end());
        const std::vector<std::span<float>> output_spans(outputs.begin(), outputs.end());
        const RunLimits limits{.rows = {4, 2}, .context = 200, .pages = {5}};
        return check_run_inputs(graph, limits,
                                {.positions = positions,
                                 .sequences = sequences,
                                 .tokens = tokens,
                                 .logit_rows = logit_rows,
                                 .page_tables = tables,
                                 .inputs = input_spans,
                                 .outputs = output_spans});
    }
};

struct BadStep {
    const char* name;
    const char* message;
    std::function<void(OwnedStep&)> spoil;
};
class CheckRunInputsRefuses : public testing::TestWithParam<BadStep> {};

TEST_P(CheckRunInputsRefuses, AndSaysWhatWasFound) {
    const Result<Graph> graph = small_model(small_layer_index());
    ASSERT_TRUE(graph.ok());
    OwnedStep step;
    ASSERT_TRUE(step.check(*graph).ok()) << step.check(*graph);
    GetParam().spoil(step);
    EXPECT_THAT(step.check(*graph).ToString(), HasSubstr(GetParam().message));
}

const BadStep kBadSteps[] = {
    {"NoRows", "0 rows",
     [](OwnedStep& s) { s.positions.clear(), s.sequences.clear(), s.tokens.clear(); }},
    {"TooManyRows", "5 rows, expected 1 to 4", [](OwnedStep& s) { s.positions.resize(5); }},
    {"SequencesMissing", "sequences of 2 rows", [](OwnedStep& s) { s.sequences.resize(2); }},
    {"TokensMissing", "0 tokens, expected 3", [](OwnedStep& s) { s.tokens.clear(); }},
    {"TokenTooLarge", "row 1: token 100", [](OwnedStep& s) { s.tokens[1] = 100; }},
    {"TooManyLogitRows", "3 rows want logits",
     [](OwnedStep& s) {
         s.logit_rows = {0, 1, 2};
     }},
    {"LogitRowsNotAscending", "logit row 1 after 2",
     [](OwnedStep& s) {
         s.logit_rows = {2, 1};
     }},
    {"LogitRowTwice", "logit row 2 after 2",
     [](OwnedStep& s) {
         s.logit_rows = {2, 2};
     }},
    {"LogitRowTooLarge", "logit row 3",
     [](OwnedStep& s) {
         s.logit_rows = {0, 3};
     }},
    {"PositionTooLarge", "row 2: position 200, expected below 200",
     [](OwnedStep& s) { s.positions[2] = 200; }},
    {"PositionsWithAGap", "row 1: position 65 of sequence 0, expected 64",
     [](OwnedStep& s) { s.positions[1] = 65; }},
    {"SequenceTooLarge", "row 2: sequence 2", [](OwnedStep& s) { s.sequences[2] = 2; }},
    {"PageTooLarge", "page 5 of sequence 0, expected below 5",
     [](OwnedStep& s) { s.pages[0][1] = 5; }},
    {"PageMissing", "position 64 needs pages 0 to 1", [](OwnedStep& s) { s.pages[0].pop_back(); }},
    {"FirstPageGone", "needs pages 0 to 0", [](OwnedStep& s) { s.first_pages[0] = 1; }},
    {"FirstPageHuge", "needs pages", [](OwnedStep& s) { s.first_pages[0] = 0xFFFF'FFFF; }},
    {"NoTables", "sequence 0, expected below 0",
     [](OwnedStep& s) { s.pages.clear(), s.first_pages.clear(); }},
    {"TwoRowsAtOnePlace", "two rows store at offset 0 of page 2",
     [](OwnedStep& s) { s.pages[1][0] = 2; }},
    {"InputTooMany", "1 inputs, expected 0", [](OwnedStep& s) { s.inputs = {{1.0F}}; }},
    {"OutputTooSmall", "199 numbers, expected 200", [](OwnedStep& s) { s.output_sizes = {199}; }},
    {"OutputMissing", "0 outputs, expected 1", [](OwnedStep& s) { s.output_sizes.clear(); }},
};
INSTANTIATE_TEST_SUITE_P(BadSteps, CheckRunInputsRefuses, testing::ValuesIn(kBadSteps),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(CheckRunInputs, RefusesActivationsThatAreNotFinite) {
    const IndexForTest index;
    GraphBuilder builder(index, {}, StateType::F16);
    builder.output(builder.scale(builder.input(2), 2));
    const Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.ok());
    const std::uint32_t rows[] = {0};
    float numbers[] = {1, 2};
    std::vector<float> result(2);
    const std::span<const float> inputs[] = {numbers};
    const std::span<float> outputs[] = {result};
    const RunInputs step{.positions = rows,
                         .sequences = rows,
                         .tokens = {},
                         .logit_rows = {},
                         .page_tables = {},
                         .inputs = inputs,
                         .outputs = outputs};
    const RunLimits limits{.rows = {1, 0}, .context = 1, .pages = {}};
    EXPECT_TRUE(check_run_inputs(*graph, limits, step).ok());
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
        numbers[1] = bad;
        EXPECT_FALSE(check_run_inputs(*graph, limits, step).ok());
    }
}

// Only positions inside the window need pages.
TEST(CheckRunInputs, AWindowNeedsNoPagesBeforeIt) {
    const IndexForTest index;
    const StateGroupSpec groups[] = {{.kind = StateKind::Windowed, .window = 10}};
    GraphBuilder builder(index, groups, StateType::F16);
    const Tensor x = builder.input(1);
    builder.store_state(builder.add_layer_state(0, {1, 1, 1}), x, x);
    const Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.ok());
    OwnedStep step;
    step.tokens.clear();
    step.logit_rows.clear();
    step.output_sizes.clear();
    step.inputs = {{1, 2}};
    step.sequences = {0, 0};
    step.pages = {{3}};
    step.first_pages = {1};
    step.positions = {73, 74};
    EXPECT_TRUE(step.check(*graph).ok()) << step.check(*graph);
    step.positions = {72, 73};  // sees position 63
    EXPECT_THAT(step.check(*graph).ToString(), HasSubstr("needs pages 0 to 1"));
}

}  // namespace
}  // namespace artel::graph
