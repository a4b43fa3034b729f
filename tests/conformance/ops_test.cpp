// SPDX-License-Identifier: Apache-2.0
// The ops without weights in formats, against the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "conformance/session.hpp"

namespace artel::conformance {
namespace {

using graph::GraphBuilder;
using graph::Tensor;

class Ops : public testing::TestWithParam<Subject> {
  protected:
    /// Runs both; each element within 1e-5 of terms(element), given the reference's outputs.
    template <class Terms>
    void compare(const graph::Graph& graph, const TestWeights& weights, const TestStep& step,
                 Terms terms) {
        const Outputs expected = Session(reference_subject(), graph, weights).run(step);
        const Outputs actual = Session(GetParam(), graph, weights).run(step);
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i) {
            std::vector<float> allowed(expected[i].size());
            for (std::size_t k = 0; k < allowed.size(); ++k)
                allowed[k] = terms(k, std::abs(expected[i][k]));
            expect_near(actual[i], expected[i], allowed);
        }
    }
};

constexpr auto kRelative = [](std::size_t, float expected) { return expected; };

TEST_P(Ops, RmsNorm) {
    struct Shape {
        std::uint64_t width, heads;
    };
    for (const Shape& shape :
         {Shape{1, 1}, {7, 1}, {16, 3}, {64, 9}, {100, 2}, {576, 1}, {641, 1}}) {
        SCOPED_TRACE(shape.width);
        TestWeights weights(shape.width);
        weights.add_vector("norm", shape.width);
        const std::uint64_t columns = shape.width * shape.heads;
        const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
            g.output(g.rms_norm(g.input(columns), g.vector("norm", shape.width), 1e-5F));
        });
        Random random(1);
        TestStep step = TestStep::run_of(0, 5);
        step.inputs = {random_floats(random, 5 * columns)};
        for (std::size_t k = 0; k < columns; ++k) step.inputs[0][k] = 0;  // a row of zeros
        compare(graph, weights, step, kRelative);
    }
}

TEST_P(Ops, LayerNorm) {
    for (const std::uint64_t width : {1U, 7U, 16U, 100U, 576U, 641U})
        for (const bool has_bias : {false, true}) {
            SCOPED_TRACE(width);
            TestWeights weights(width);
            weights.add_vector("norm", width);
            weights.add_vector("bias", width);
            const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
                const Tensor x = g.input(width);
                std::optional<Tensor> bias;
                if (has_bias) bias = g.vector("bias", width);
                g.output(g.layer_norm(x, g.vector("norm", width), bias, 1e-5F));
            });
            Random random(1);
            TestStep step = TestStep::run_of(0, 5);
            step.inputs = {random_floats(random, 5 * width)};
            for (std::size_t k = 0; k < width; ++k) step.inputs[0][k] = 0.25F;  // no variance
            compare(graph, weights, step, [](std::size_t, float expected) { return expected + 3; });
        }
}

TEST_P(Ops, GeluErf) {
    constexpr std::size_t kColumns = 999;
    const TestWeights weights(0);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        g.output(g.activate(graph::ActivationKind::GeluErf, g.input(kColumns)));
    });
    TestStep step = TestStep::run_of(0, 2);
    step.inputs = {{}};
    for (std::size_t i = 0; i < 2 * kColumns; ++i) {
        const float x = static_cast<float>(i % kColumns) / 499 - 1;
        step.inputs[0].push_back(i < kColumns ? 6 * x : 200 * x);
    }
    // P(x) is within 2e-7.
    compare(graph, weights, step, [&](std::size_t k, float expected) {
        return expected + 0.02F * std::abs(step.inputs[0][k]);
    });
}

TEST_P(Ops, Rope) {
    struct Shape {
        std::uint32_t heads, head_dim, rope_dim;
        float base, frequency_scale;
        bool has_factors;
    };
    const Shape shapes[] = {{1, 2, 2, 10000, 1, false},
                            {3, 64, 64, 100000, 1, false},
                            {9, 64, 64, 10000, 0.125F, false},
                            {2, 100, 30, 1e6F, 1, true},
                            {4, 128, 128, 500000, 1, true}};
    for (const Shape& shape : shapes)
        for (const auto style : {graph::RopeStyle::Interleaved, graph::RopeStyle::Halves}) {
            SCOPED_TRACE(fmt::format("{} of {}", shape.rope_dim, shape.head_dim));
            TestWeights weights(1);
            Random random(2);
            std::vector<float> factors(shape.rope_dim / 2);
            for (float& factor : factors) factor = static_cast<float>(1 + 31 * random.unit());
            weights.set_vector("factors", factors);
            const std::uint64_t columns = std::uint64_t{shape.heads} * shape.head_dim;
            const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
                graph::RopeOptions options{.head_count = shape.heads,
                                           .head_dim = shape.head_dim,
                                           .rope_dim = shape.rope_dim,
                                           .style = style,
                                           .base = shape.base,
                                           .frequency_scale = shape.frequency_scale,
                                           .factors = {}};
                if (shape.has_factors) options.factors = g.vector("factors", factors.size());
                g.output(g.rope(g.input(columns), options));
            });
            for (const std::uint32_t first : {0U, 61U, 4000U}) {
                TestStep step = TestStep::run_of(first, 4);
                step.inputs = {random_floats(random, 4 * columns)};
                compare(graph, weights, step, [](std::size_t, float) { return 1.0F; });
            }
        }
}

TEST_P(Ops, ElementByElement) {
    for (const std::uint64_t columns : {1U, 7U, 8U, 33U, 576U}) {
        SCOPED_TRACE(columns);
        const TestWeights weights(1);
        const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
            const Tensor a = g.input(columns);
            const Tensor b = g.input(columns);
            g.output(g.add(a, b));
            g.output(g.multiply(a, b));
            g.output(g.scale(a, 0.3F));
            g.output(g.soft_cap(a, 5.0F));
        });
        Random random(3);
        TestStep step = TestStep::run_of(0, 3);
        for (int i = 0; i < 2; ++i) {
            step.inputs.push_back(random_floats(random, 3 * columns));
            for (float& x : step.inputs.back()) x *= 20;
        }
        compare(graph, weights, step, kRelative);
    }
}

// Over the whole range where the gate is neither 0 nor the identity, and far outside it.
TEST_P(Ops, GatedActivation) {
    constexpr std::uint64_t kColumns = 1001;
    const TestWeights weights(1);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        const Tensor gate = g.input(kColumns);
        const Tensor up = g.input(kColumns);
        g.output(g.gated_activation(graph::GateKind::Silu, gate, up));
        g.output(g.gated_activation(graph::GateKind::GeluTanh, gate, up));
    });
    Random random(4);
    TestStep step = TestStep::run_of(0, 2);
    step.inputs = {{}, random_floats(random, 2 * kColumns)};
    for (std::size_t i = 0; i < 2 * kColumns; ++i) {
        const float x = static_cast<float>(i % kColumns) / 500 - 1;
        step.inputs[0].push_back(i < kColumns ? 12 * x : 300 * x);
    }
    compare(graph, weights, step, [&](std::size_t k, float expected) {
        return expected + 1e-3F * std::abs(step.inputs[0][k] * step.inputs[1][k]);
    });
}

TEST_P(Ops, SelectRows) {
    constexpr std::uint64_t kColumns = 37;
    TestWeights weights(1);
    weights.add("head", quant::FormatId::F32, 11, kColumns);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        const Tensor rows = g.select_rows(g.input(kColumns));
        g.output(rows);
        g.output(g.matmul(g.weight("head", 11, kColumns), rows));
    });
    Random random(5);
    TestStep step = TestStep::run_of(0, 9);
    step.inputs = {random_floats(random, 9 * kColumns)};
    for (const std::vector<std::uint32_t>& rows :
         {std::vector<std::uint32_t>{}, {8}, {0, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8}}) {
        step.logit_rows = rows;
        compare(graph, weights, step, [](std::size_t, float) { return 10.0F; });
    }
}

// A chain long enough for scratch memory to be used again: a wrong memory plan would mix values.
TEST_P(Ops, ChainsShareScratchMemory) {
    constexpr std::uint64_t kColumns = 64;
    TestWeights weights(6);
    weights.add_vector("norm", kColumns);
    weights.add("w", quant::FormatId::Q8_0, kColumns, kColumns);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        Tensor x = g.input(kColumns);
        const Tensor first = g.scale(x, 2.0F);
        for (int i = 0; i < 12; ++i) {
            const Tensor normed = g.rms_norm(x, g.vector("norm", kColumns), 1e-6F);
            const Tensor gate = g.add(normed, first);
            x = g.add(x, g.gated_activation(graph::GateKind::Silu, gate, normed));
        }
        g.output(x);
        g.output(g.matmul(g.weight("w", kColumns, kColumns), first));
    });
    Random random(7);
    TestStep step = TestStep::run_of(0, 17);
    step.inputs = {random_floats(random, 17 * kColumns)};
    compare(graph, weights, step, [](std::size_t, float expected) { return 100 + expected; });
}

INSTANTIATE_TEST_SUITE_P(Conformance, Ops, testing::ValuesIn(subjects()),
                         [](const auto& p) { return p.param.name(); });

}  // namespace
}  // namespace artel::conformance
