// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "graph/graph_test_weights.hpp"

namespace artel::graph {
namespace {

using testing::HasSubstr;

TEST(GraphBuilder, RecordsAModel) {
    const IndexForTest index = small_layer_index();
    const Result<Graph> graph = small_model(index);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->vocabulary_size, 100U);
    EXPECT_EQ(graph->ops.size(), 17U);
    EXPECT_EQ(op_name(graph->ops.front()), "EmbedRows");
    EXPECT_EQ(op_name(graph->ops.back()), "MatMul");
    // Each tensor of the file once, in order of first use.
    std::vector<std::string> names;
    for (const Weight& weight : graph->weights) names.push_back(weight.name);
    EXPECT_THAT(names,
                testing::ElementsAre("embedding", "norm", "q", "k", "v", "gate", "up", "down"));
    EXPECT_EQ(graph->weights[2].bytes, 32U * 34);
    ASSERT_EQ(graph->outputs.size(), 1U);
    EXPECT_EQ(graph->shape(graph->outputs[0]), (Shape{RowKind::Logits, 0, 100}));
    EXPECT_EQ(graph->record(graph->outputs[0]).kind, TensorKind::Output);
    EXPECT_EQ(graph->groups[0].layers, (std::vector<LayerState>{{2, 8, 8}}));
}

TEST(GraphBuilder, RoundsActivationsForIntegerFormatsOnly) {
    IndexForTest index;
    for (const quant::FormatTraits& traits : quant::all_formats())
        index.add(std::string(traits.name), traits.id, 4, 256);
    GraphBuilder builder(index, {}, StateType::F16);
    const Tensor x = builder.input(256);
    for (const quant::FormatTraits& traits : quant::all_formats())
        builder.matmul(builder.weight(std::string(traits.name), 4, 256), x);
    const Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    for (std::size_t i = 0; i < graph->ops.size(); ++i) {
        const bool is_float = quant::all_formats()[i].block_elements == 1;
        EXPECT_EQ(std::get<MatMul>(graph->ops[i]).activations,
                  is_float ? Activations::F32 : Activations::I8x32);
    }
}

TEST(GraphBuilder, PartsOfAWeightShareIt) {
    const IndexForTest index = small_layer_index();
    GraphBuilder builder(index, {}, StateType::F16);
    const Tensor whole = builder.weight("gate", 64, 32);
    const Tensor part = builder.weight_rows(builder.weight_rows(whole, 10, 50), 7, 43);
    builder.output(builder.matmul(part, builder.input(32)));
    const Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->weights.size(), 1U);
    EXPECT_EQ(graph->record(part).first_row, 17U);
    EXPECT_EQ(graph->shape(part).rows, 43U);
}

TEST(GraphBuilder, TakesTheWindowFromTheGroup) {
    const IndexForTest index;
    const StateGroupSpec groups[] = {{}, {.kind = StateKind::Windowed, .window = 512}};
    GraphBuilder builder(index, groups, StateType::F32);
    for (const std::uint32_t group : {0U, 1U}) {
        const Tensor x = builder.input(16);
        const StateSlot slot = builder.add_layer_state(group, {1, 16, 16});
        builder.store_state(slot, x, x);
        builder.attention(slot, x, {.head_count = 1});
    }
    const Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(std::get<Attention>(graph->ops[1]).window, 0U);
    EXPECT_EQ(std::get<Attention>(graph->ops[3]).window, 512U);
}

// Each mistake alone, in an else sound builder, with words that its message must hold.
struct Mistake {
    const char* name;
    const char* message;
    std::function<void(GraphBuilder&)> make;
};
class GraphBuilderRefuses : public testing::TestWithParam<Mistake> {};

TEST_P(GraphBuilderRefuses, AndSaysWhatWasFound) {
    IndexForTest index = small_layer_index();
    index.entries["strange"] = {.gguf_type = 9999, .rows = 4, .columns = 32};
    index.add("ragged", quant::FormatId::Q4_0, 4, 33);
    index.add("half", quant::FormatId::F16, 1, 32);
    index.add("huge", quant::FormatId::F32, 1ULL << 40, 1ULL << 40);
    const StateGroupSpec groups[] = {{}, {.kind = StateKind::Slot}};
    GraphBuilder builder(index, groups, StateType::F16);
    GetParam().make(builder);
    const Error first = builder.has_failed() ? ok() : internal_error("accepted");
    EXPECT_TRUE(first.ok()) << first;
    // Whatever follows does nothing, and the first error stays.
    record_small_model(builder);
    const Result<Graph> graph = builder.finish();
    ASSERT_FALSE(graph.ok());
    EXPECT_THAT(graph.status().ToString(), HasSubstr(GetParam().message));
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const Mistake kMistakes[] = {
    {"AbsentWeight", "absent: the file has no such tensor",
     [](GraphBuilder& g) { g.weight("absent", 1, 32); }},
    {"UnknownFormat", "strange: tensors of GGUF type 9999",
     [](GraphBuilder& g) { g.weight("strange", 4, 32); }},
    {"OtherShape", "q: (32, 32) in the file, expected (16, 32)",
     [](GraphBuilder& g) { g.weight("q", 16, 32); }},
    {"PartialBlock", "ragged: (4, 33) is no shape of format Q4_0",
     [](GraphBuilder& g) { g.weight("ragged", 4, 33); }},
    {"HugeWeight", "huge:", [](GraphBuilder& g) { g.weight("huge", 1ULL << 40, 1ULL << 40); }},
    {"VectorOfOtherFormat", "half (1, 32), expected an F32 vector",
     [](GraphBuilder& g) { g.vector("half", 32); }},
    {"RowsPastTheEnd", "rows 30 to 33",
     [](GraphBuilder& g) { g.weight_rows(g.weight("q", 32, 32), 30, 3); }},
    {"RowsThatOverflow", "weight_rows",
     [](GraphBuilder& g) { g.weight_rows(g.weight("q", 32, 32), 1, ~0ULL); }},
    {"NoColumns", "input: 0 columns", [](GraphBuilder& g) { g.input(0); }},
    {"MatMulOfOtherColumns", "matmul: (R, 64), expected rows of 32 columns for q",
     [](GraphBuilder& g) { g.matmul(g.weight("q", 32, 32), g.input(64)); }},
    {"MatMulOfAWeight", "matmul",
     [](GraphBuilder& g) { g.matmul(g.weight("q", 32, 32), g.weight("q", 32, 32)); }},
    {"BiasOfOtherSize", "norm (1, 32), expected (1, 16)",
     [](GraphBuilder& g) {
         g.matmul(g.weight("k", 16, 32), g.input(32), {.scale = {}, .bias = g.vector("norm", 32)});
     }},
    {"NormOfOtherWidth", "rms_norm: (R, 48), expected rows of a multiple of 32",
     [](GraphBuilder& g) { g.rms_norm(g.input(48), g.vector("norm", 32), 1e-5F); }},
    {"EpsilonNotFinite", "epsilon inf",
     [](GraphBuilder& g) { g.rms_norm(g.input(32), g.vector("norm", 32), kInfinity); }},
    {"RopeOfOtherHeads", "rope: (R, 32), expected rows of 3 heads of 8",
     [](GraphBuilder& g) {
         g.rope(g.input(32), {.head_count = 3, .head_dim = 8, .rope_dim = 8, .factors = {}});
     }},
    {"OddRope", "rope: 7 columns to turn in heads of 8",
     [](GraphBuilder& g) {
         g.rope(g.input(32), {.head_count = 4, .head_dim = 8, .rope_dim = 7, .factors = {}});
     }},
    {"RopeBase", "rope: base 0",
     [](GraphBuilder& g) {
         g.rope(g.input(8),
                {.head_count = 1, .head_dim = 8, .rope_dim = 8, .base = 0, .factors = {}});
     }},
    {"NoSuchGroup", "state group 2 of 2",
     [](GraphBuilder& g) {
         g.add_layer_state(2, {1, 8, 8});
     }},
    {"SlotGroup", "a group of slots",
     [](GraphBuilder& g) {
         g.add_layer_state(1, {1, 8, 8});
     }},
    {"NoKeyColumns", "1 kv heads with 0 key",
     [](GraphBuilder& g) {
         g.add_layer_state(0, {1, 0, 8});
     }},
    {"StateOfOtherSize", "store_state: (R, 8), expected (R, 16)",
     [](GraphBuilder& g) {
         g.store_state(g.add_layer_state(0, {2, 8, 8}), g.input(8), g.input(16));
     }},
    {"AttentionBeforeStore", "nothing was stored",
     [](GraphBuilder& g) {
         g.attention(g.add_layer_state(0, {1, 8, 8}), g.input(8), {.head_count = 1});
     }},
    {"HeadsDoNotShareEvenly", "3 query heads, expected a multiple of 2",
     [](GraphBuilder& g) {
         const StateSlot slot = g.add_layer_state(0, {2, 8, 8});
         g.store_state(slot, g.input(16), g.input(16));
         g.attention(slot, g.input(24), {.head_count = 3});
     }},
    {"AddOfOtherShapes", "add: (R, 33), expected (R, 32)",
     [](GraphBuilder& g) { g.add(g.input(32), g.input(33)); }},
    {"AddOfStepAndLogitRows", "add: (L, 32), expected (R, 32)",
     [](GraphBuilder& g) {
         const Tensor x = g.input(32);
         g.add(x, g.select_rows(x));
     }},
    {"SelectTwice", "select_rows: (L, 32)",
     [](GraphBuilder& g) { g.select_rows(g.select_rows(g.input(32))); }},
    {"OutputOfAnInput", "output", [](GraphBuilder& g) { g.output(g.input(32)); }},
    {"OutputTwice", "output",
     [](GraphBuilder& g) {
         const Tensor x = g.scale(g.input(32), 2);
         g.output(x);
         g.output(x);
     }},
    {"ForeignTensor", "a tensor of no graph", [](GraphBuilder& g) { g.scale(Tensor{77}, 2); }},
    {"ItsOwn", "layers of odd sizes",
     [](GraphBuilder& g) { g.fail(invalid_argument("layers of odd sizes")); }},
};
INSTANTIATE_TEST_SUITE_P(Mistakes, GraphBuilderRefuses, testing::ValuesIn(kMistakes),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(GraphBuilder, RefusesAWindowOfNothing) {
    const IndexForTest index;
    const StateGroupSpec groups[] = {{.kind = StateKind::Windowed, .window = 0}};
    GraphBuilder builder(index, groups, StateType::F16);
    EXPECT_FALSE(builder.finish().ok());
}

TEST(GraphBuilder, IsEmptyAfterFinish) {
    const IndexForTest index = small_layer_index();
    GraphBuilder builder(index, {}, StateType::F16);
    EXPECT_TRUE(builder.finish().ok());
    EXPECT_FALSE(builder.finish().ok());
    EXPECT_FALSE(builder.input(32).is_valid());
}

}  // namespace
}  // namespace artel::graph
