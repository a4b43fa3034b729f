// SPDX-License-Identifier: Apache-2.0
// The CPU class, bit for bit: every path gives the bytes of ExactModel, and a row's result depends
// neither on the rows beside it nor on how its sequence was cut into steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "conformance/exact_model.hpp"
#include "conformance/session.hpp"
#include "graph/arithmetic.hpp"

namespace artel::conformance {
namespace {

using graph::GraphBuilder;
using graph::Tensor;

std::vector<Subject> cpu_subjects() {
    std::vector<Subject> found;
    for (const Subject& subject : subjects())
        if (subject.backend == "cpu") found.push_back(subject);
    return found;
}

class ExactOrder : public testing::TestWithParam<Subject> {};

TEST_P(ExactOrder, MatMulOfEveryFormat) {
    for (const quant::FormatTraits& traits : quant::all_formats()) {
        SCOPED_TRACE(traits.name);
        const std::uint64_t columns = 4 * std::max(64U, traits.block_elements);
        constexpr std::uint64_t kOutputs = 37;
        TestWeights weights(21);
        weights.add("w", traits.id, kOutputs, columns);
        const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
            g.output(g.matmul(g.weight("w", kOutputs, columns), g.input(columns)));
        });
        Session session(GetParam(), graph, weights);
        const std::uint64_t row_bytes = graph.weights[0].bytes / kOutputs;
        for (const std::uint32_t rows : {1U, 3U, 8U, 13U}) {
            Random random(rows);
            TestStep step = TestStep::run_of(0, rows);
            step.inputs = {random_floats(random, rows * columns)};
            Outputs expected(1);
            for (std::uint32_t r = 0; r < rows; ++r)
                for (std::uint64_t n = 0; n < kOutputs; ++n)
                    expected[0].push_back(exact_dot(
                        traits.id, std::span(weights.bytes("w")).subspan(n * row_bytes, row_bytes),
                        std::span(step.inputs[0]).subspan(r * columns, columns)));
            expect_equal(session.run(step), expected);
        }
    }
}

// A NaN or an infinity makes the row NaN, and no other row.
TEST_P(ExactOrder, OverflowSpoilsItsOwnRowAlone) {
    constexpr std::uint64_t kColumns = 256;
    TestWeights weights(22);
    weights.add("w", quant::FormatId::Q4_1, 9, kColumns);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        const Tensor x = g.scale(g.input(kColumns), 1e30F);
        g.output(g.matmul(g.weight("w", 9, kColumns), g.scale(x, 1e-30F)));
    });
    Random random(23);
    TestStep step = TestStep::run_of(0, 3);
    step.inputs = {random_floats(random, 3 * kColumns)};
    step.inputs[0][kColumns + 77] = 1e10F;  // overflows to infinity in the graph
    const Outputs outputs = Session(GetParam(), graph, weights).run(step);
    for (std::size_t i = 0; i < outputs[0].size(); ++i)
        EXPECT_EQ(std::isnan(outputs[0][i]), i / 9 == 1) << i;
}

TEST_P(ExactOrder, RmsNorm) {
    for (const std::uint64_t width : {1U, 7U, 16U, 31U, 64U, 576U, 641U}) {
        SCOPED_TRACE(width);
        TestWeights weights(24);
        weights.add_vector("norm", width);
        const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
            g.output(g.rms_norm(g.input(2 * width), g.vector("norm", width), 1e-6F));
        });
        Random random(25);
        TestStep step = TestStep::run_of(0, 3);
        step.inputs = {random_floats(random, 3 * 2 * width)};
        Outputs expected(1);
        for (std::size_t at = 0; at < step.inputs[0].size(); at += width) {
            const std::vector<float> part = exact_rms_norm(
                std::span(step.inputs[0]).subspan(at, width), weights.row("norm", 0), 1e-6F);
            expected[0].insert(expected[0].end(), part.begin(), part.end());
        }
        expect_equal(Session(GetParam(), graph, weights).run(step), expected);
    }
}

TEST_P(ExactOrder, ElementByElement) {
    const std::uint64_t columns = 1003;
    const TestWeights weights(0);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        const Tensor a = g.input(columns);
        const Tensor b = g.input(columns);
        g.output(g.gated_activation(graph::GateKind::Silu, a, b));
        g.output(g.gated_activation(graph::GateKind::GeluTanh, a, b));
        g.output(g.soft_cap(a, 30));
        g.output(g.add(a, b));
        g.output(g.multiply(a, b));
        g.output(g.scale(a, 0.1F));
    });
    Random random(26);
    TestStep step = TestStep::run_of(0, 2);
    for (int i = 0; i < 2; ++i) {
        step.inputs.push_back(random_floats(random, 2 * columns));
        for (std::size_t k = 0; k < 2 * columns; ++k)
            step.inputs.back()[k] *= k % 3 == 0 ? 200.0F : 6.0F;
    }
    Outputs expected(6);
    for (std::size_t k = 0; k < 2 * columns; ++k) {
        const float a = step.inputs[0][k];
        const float b = step.inputs[1][k];
        const float results[] = {graph::silu(a) * b,
                                 graph::gelu_tanh(a) * b,
                                 graph::soft_cap(a, 30),
                                 a + b,
                                 a * b,
                                 a * 0.1F};
        for (std::size_t i = 0; i < 6; ++i) expected[i].push_back(results[i]);
    }
    expect_equal(Session(GetParam(), graph, weights).run(step), expected);
}

/// One layer with rope, state and attention: what makes rows depend on positions.
graph::Graph attention_graph(const TestWeights& weights, std::uint32_t window,
                             graph::StateType type) {
    const graph::StateGroupSpec group{
        .kind = window > 0 ? graph::StateKind::Windowed : graph::StateKind::Paged,
        .window = window};
    return build_graph(weights, {group}, type, [&](GraphBuilder& g) {
        const Tensor x = g.input(64);
        const auto project = [&](const char* name, std::uint64_t rows) {
            return g.matmul(g.weight(name, rows, 64), x);
        };
        const graph::RopeOptions rope{
            .head_count = 2, .head_dim = 24, .rope_dim = 24, .factors = {}};
        const Tensor keys = g.rope(project("k", 48), rope);
        const Tensor values = project("v", 40);
        const Tensor query = g.rope(
            project("q", 96), {.head_count = 4, .head_dim = 24, .rope_dim = 24, .factors = {}});
        const graph::StateSlot slot = g.add_layer_state(0, {2, 24, 20});
        g.store_state(slot, keys, values);
        g.output(g.attention(slot, query, {.head_count = 4, .scale = 0.3F}));
        g.output(keys);
        g.output(values);
        g.output(query);
    });
}

TestWeights attention_weights() {
    TestWeights weights(27);
    weights.add("q", quant::FormatId::Q8_0, 96, 64);
    weights.add("k", quant::FormatId::Q4_1, 48, 64);
    weights.add("v", quant::FormatId::F16, 40, 64);
    return weights;
}

/// Rows [first, end) of a sequence with their inputs, which depend on sequence and position alone.
void append_rows(TestStep& step, std::uint32_t sequence, std::uint32_t first, std::uint32_t end) {
    step.inputs.resize(1);
    for (std::uint32_t position = first; position < end; ++position) {
        step.positions.push_back(position);
        step.sequences.push_back(sequence);
        Random random(sequence * 100'003 + position);
        for (const float x : random_floats(random, 64)) step.inputs[0].push_back(x);
    }
}

constexpr std::uint32_t kEnd = 200;  // positions of a sequence
TestStep::Table whole_table(std::uint32_t sequence) {
    return {.first_page = 0,
            .pages = {4 * sequence, 4 * sequence + 2, 4 * sequence + 1, 4 * sequence + 3}};
}

/// The attention output and the other outputs of one sequence, cut into steps of `chunk` rows.
Outputs run_in_chunks(Session& session, std::uint32_t chunk) {
    Outputs all(4);
    for (std::uint32_t first = 0; first < kEnd; first += chunk) {
        TestStep step;
        append_rows(step, 0, first, std::min(first + chunk, kEnd));
        step.tables = {whole_table(0)};
        const Outputs part = session.run(step);
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i].insert(all[i].end(), part[i].begin(), part[i].end());
    }
    return all;
}

class ExactAttention
    : public testing::TestWithParam<std::tuple<Subject, std::uint32_t, graph::StateType>> {};

TEST_P(ExactAttention, IsTheModelsForEveryCut) {
    const auto& [subject, window, type] = GetParam();
    const TestWeights weights = attention_weights();
    const graph::Graph graph = attention_graph(weights, window, type);
    Session session(subject, graph, weights, {kEnd, 1});
    const Outputs whole = run_in_chunks(session, kEnd);

    graph::Attention op;
    op.scale = 0.3F;
    op.window = window;
    const auto stored = [type = type](float x) {
        return type == graph::StateType::F16 ? quant::f16_to_f32(quant::f32_to_f16(x)) : x;
    };
    ExactHead heads[2];
    for (std::size_t head = 0; head < 2; ++head)
        for (std::size_t p = 0; p < kEnd; ++p) {
            const auto keys = std::span(whole[1]).subspan(p * 48 + head * 24, 24);
            const auto values = std::span(whole[2]).subspan(p * 40 + head * 20, 20);
            heads[head].keys.emplace_back(keys.begin(), keys.end());
            heads[head].values.emplace_back(values.begin(), values.end());
            for (float& x : heads[head].keys.back()) x = stored(x);
            for (float& x : heads[head].values.back()) x = stored(x);
        }
    Outputs expected(1);
    for (std::uint32_t position = 0; position < kEnd; ++position)
        for (std::size_t head = 0; head < 4; ++head) {
            const auto query = std::span(whole[3]).subspan(position * 96 + head * 24, 24);
            const std::vector<float> out = exact_attention(op, heads[head / 2], query, position);
            expected[0].insert(expected[0].end(), out.begin(), out.end());
        }
    expect_equal({whole[0]}, expected);
    for (const std::uint32_t chunk : {1U, 7U, 64U, 65U}) {
        SCOPED_TRACE(chunk);
        Session again(subject, graph, weights, {kEnd, 1});
        expect_equal(run_in_chunks(again, chunk), whole);
    }
}

// Three sequences in the same steps, their rows mixed, give what each gives alone.
TEST_P(ExactAttention, DoesNotDependOnOtherSequences) {
    const auto& [subject, window, type] = GetParam();
    const TestWeights weights = attention_weights();
    const graph::Graph graph = attention_graph(weights, window, type);
    Session session(subject, graph, weights, {kEnd, 1});
    const Outputs alone = run_in_chunks(session, 50);
    Session mixed(subject, graph, weights, {kEnd, 1});
    Outputs found(4);
    for (std::uint32_t first = 0; first < kEnd; first += 20) {
        TestStep step;
        for (std::uint32_t part = first; part < first + 20; part += 5) {
            append_rows(step, 1, part, part + 5);
            append_rows(step, 0, part, part + 5);
        }
        if (first < 90) append_rows(step, 2, first / 20 * 3, first / 20 * 3 + 3);
        step.tables = {whole_table(0), whole_table(1), whole_table(2)};
        const Outputs outputs = mixed.run(step);
        for (std::size_t i = 0; i < found.size(); ++i) {
            const std::size_t width = outputs[i].size() / step.positions.size();
            for (std::size_t row = 0; row < step.positions.size(); ++row)
                if (step.sequences[row] == 0)
                    found[i].insert(found[i].end(), outputs[i].begin() + long(row * width),
                                    outputs[i].begin() + long((row + 1) * width));
        }
    }
    expect_equal(found, alone);
}

std::string attention_name(
    const testing::TestParamInfo<std::tuple<Subject, std::uint32_t, graph::StateType>>& info) {
    const auto& [subject, window, type] = info.param;
    return fmt::format("w{}_{}_{}", window, type == graph::StateType::F16 ? "f16" : "f32",
                       subject.name());
}

INSTANTIATE_TEST_SUITE_P(Conformance, ExactOrder, testing::ValuesIn(cpu_subjects()),
                         [](const auto& p) { return p.param.name(); });
INSTANTIATE_TEST_SUITE_P(
    Conformance, ExactAttention,
    testing::Combine(testing::ValuesIn(cpu_subjects()), testing::Values(0U, 1U, 50U, 64U, 100U),
                     testing::Values(graph::StateType::F16, graph::StateType::F32)),
    attention_name);

}  // namespace
}  // namespace artel::conformance
