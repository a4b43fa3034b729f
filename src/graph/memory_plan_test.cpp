// SPDX-License-Identifier: Apache-2.0
#include "graph/memory_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "graph/cost.hpp"
#include "graph/graph_test_weights.hpp"

namespace artel::graph {
namespace {

/// Runs the ops in order on owners instead of numbers: each written tensor claims its bytes (in
/// units of 64), and every read must find its bytes still its own.
void expect_sound(const Graph& graph, const MemoryPlan& plan, const RowCounts& rows) {
    std::vector<std::uint32_t> owner(plan.bytes / kScratchAlignment, Tensor::kNone);
    const auto units = [&](Tensor x) {
        const std::uint64_t bytes = row_count(graph.shape(x), rows) * graph.shape(x).columns * 4;
        return (bytes + kScratchAlignment - 1) / kScratchAlignment;
    };
    for (const Op& op : graph.ops) {
        const OpTensors used = op_tensors(op);
        const auto is_scratch = [&](Tensor x) {
            return x.is_valid() && graph.record(x).kind == TensorKind::Scratch;
        };
        if (is_scratch(used.writes)) {
            const std::uint64_t offset = plan.offsets[used.writes.index];
            ASSERT_EQ(offset % kScratchAlignment, 0U);
            ASSERT_LE(offset + units(used.writes) * kScratchAlignment, plan.bytes);
            for (std::uint64_t i = 0; i < units(used.writes); ++i)
                owner[offset / kScratchAlignment + i] = used.writes.index;
        }
        for (const Tensor read : used.reads) {
            if (!is_scratch(read)) continue;
            for (std::uint64_t i = 0; i < units(read); ++i)
                ASSERT_EQ(owner[plan.offsets[read.index] / kScratchAlignment + i], read.index)
                    << op_name(op);
        }
    }
}

TEST(MemoryPlan, KeepsWhatIsStillReadInASmallModel) {
    const Result<Graph> graph = small_model(small_layer_index());
    ASSERT_TRUE(graph.ok());
    const RowCounts rows{13, 5};
    const Result<MemoryPlan> plan = plan_memory(*graph, rows);
    ASSERT_TRUE(plan.ok());
    expect_sound(*graph, *plan, rows);
    for (std::size_t i = 0; i < graph->tensors.size(); ++i)
        EXPECT_EQ(plan->offsets[i] == MemoryPlan::kNoPlace,
                  graph->tensors[i].kind != TensorKind::Scratch);
    // Outputs take no place: 5 rows of 100 logits alone would need this much more.
    EXPECT_LE(plan->bytes, 13U * (64 + 64 + 32 + 32 + 32) * 4 + 5 * kScratchAlignment);
}

TEST(MemoryPlan, ReusesTheMemoryOfAChain) {
    const IndexForTest index;
    GraphBuilder builder(index, {}, StateType::F16);
    Tensor x = builder.input(16);
    for (int i = 0; i < 50; ++i) x = builder.scale(x, 2);
    builder.output(x);
    const Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.ok());
    const Result<MemoryPlan> plan = plan_memory(*graph, {4, 0});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->bytes, 2U * 4 * 16 * 4);
}

TEST(MemoryPlan, IsSoundForRandomGraphs) {
    const IndexForTest index;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        Random random(seed);
        GraphBuilder builder(index, {}, StateType::F16);
        std::vector<std::vector<Tensor>> of_width(3);
        for (std::size_t i = 0; i < 3; ++i) of_width[i] = {builder.input(1 + 30 * i * i)};
        for (int op = 0; op < 60; ++op) {
            std::vector<Tensor>& known = of_width[random.below(3)];
            const Tensor a = known[random.below(known.size())];
            const Tensor b = known[random.below(known.size())];
            known.push_back(random.chance(0.5) ? builder.add(a, b) : builder.scale(a, 2));
        }
        const Result<Graph> graph = builder.finish();
        ASSERT_TRUE(graph.ok());
        const RowCounts rows{1 + random.below(9), 0};
        const Result<MemoryPlan> plan = plan_memory(*graph, rows);
        ASSERT_TRUE(plan.ok());
        expect_sound(*graph, *plan, rows);
    }
}

TEST(MemoryPlan, RefusesSizesBeyondMemory) {
    const IndexForTest index;
    GraphBuilder builder(index, {}, StateType::F16);
    builder.scale(builder.input(1 << 20), 2);
    const Result<Graph> graph = builder.finish();
    ASSERT_TRUE(graph.ok());
    EXPECT_EQ(plan_memory(*graph, {~0ULL / 4, 0}).status().code(), ErrorCode::kResourceExhausted);
}

TEST(PageLayout, PartsAreAlignedAndDoNotOverlap) {
    const StateGroup group{.spec = {}, .type = StateType::F16, .layers = {{3, 5, 7}, {1, 64, 64}}};
    const PageLayout layout = page_layout(group);
    EXPECT_EQ(layout.layers[0].keys_offset, 0U);
    EXPECT_EQ(layout.layers[0].values_offset, 3U * 5 * 64 * 2);
    EXPECT_EQ(layout.layers[1].keys_offset, 3U * (5 + 7) * 64 * 2);
    EXPECT_EQ(layout.page_bytes, 3U * (5 + 7) * 64 * 2 + (64 + 64) * 64 * 2);
    // Every element of a layer has a place of its own.
    const LayerState& layer = group.layers[0];
    std::vector<int> keys(3 * 5 * 64), values(3 * 7 * 64);
    for (std::uint64_t head = 0; head < 3; ++head)
        for (std::uint64_t offset = 0; offset < 64; ++offset) {
            for (std::uint64_t k = 0; k < 5; ++k) ++keys.at(key_index(layer, head, k, offset));
            for (std::uint64_t c = 0; c < 7; ++c) ++values.at(value_index(layer, head, c, offset));
        }
    EXPECT_EQ(std::count(keys.begin(), keys.end(), 1), 3 * 5 * 64);
    EXPECT_EQ(std::count(values.begin(), values.end(), 1), 3 * 7 * 64);
}

TEST(Cost, CountsAMatMulAndAttentionByHand) {
    const Result<Graph> graph = small_model(small_layer_index());
    ASSERT_TRUE(graph.ok());
    const CostInputs inputs{.rows = {10, 2}, .context = 99};
    for (const Op& op : graph->ops) {
        const Cost one = cost(*graph, op, inputs);
        if (const auto* attention = std::get_if<Attention>(&op)) {
            // 10 rows see 100 positions of 2 kv heads with 8 + 8 columns of 2 bytes.
            EXPECT_EQ(one.state_bytes, 10U * 100 * 2 * 16 * 2);
            EXPECT_EQ(one.flops, 2U * 10 * 100 * 4 * 16);
            EXPECT_EQ(attention->head_count, 4U);
        }
        const auto* matmul = std::get_if<MatMul>(&op);
        if (matmul != nullptr && graph->weight(matmul->weight).name == "down") {
            EXPECT_EQ(one.weight_bytes, 32U * 2 * 24);
            EXPECT_EQ(one.flops, 2U * 10 * 32 * 64);
            EXPECT_EQ(one.activation_bytes, 10U * (32 + 64) * 4);
        }
    }
    const std::uint64_t embedding = 100 * 34;
    const std::uint64_t layer = 128 + 32 * 34 + 16 * 18 + 16 * 64 + 64 * 20 + 64 * 22 + 32 * 2 * 24;
    EXPECT_EQ(weight_bytes(*graph), embedding + layer);
    // Read in a step: the norm twice, 10 embedding rows, the head whole.
    EXPECT_EQ(cost(*graph, inputs).weight_bytes, embedding + layer + 128 + 10 * 34);
    EXPECT_EQ(state_bytes_per_token(graph->groups[0]), 2U * 16 * 2);
    EXPECT_EQ(cost(*graph, {.rows = {10, 0}, .context = 0}).weight_bytes, layer + 128 + 10 * 34);
}

}  // namespace
}  // namespace artel::graph
