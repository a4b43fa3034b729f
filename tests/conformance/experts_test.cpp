// SPDX-License-Identifier: Apache-2.0
// RoutedExperts: the CPU class must give the bytes of its rule, put together here from the choice
// of experts and plain MatMuls over each expert's part of the weights; the reference is compared
// within a tolerance.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "conformance/session.hpp"
#include "graph/routing.hpp"

namespace artel::conformance {
namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct ExpertsCase {
    const char* name;
    quant::FormatId format;
    graph::Routing routing;
    graph::GateKind kind;
    std::uint64_t width, hidden;
    bool has_biases;
};
using graph::ExpertScore;
using graph::GateKind;
using quant::FormatId;
const ExpertsCase kCases[] = {
    {"softmax_f32", FormatId::F32, {ExpertScore::Softmax, 6, 2}, GateKind::Silu, 40, 20, false},
    {"sigmoid_f16",
     FormatId::F16,
     {ExpertScore::Sigmoid, 6, 3, 3, 2, true, 2.5F},
     GateKind::GeluTanh,
     64,
     33,
     false},
    {"chosen_q8",
     FormatId::Q8_0,
     {ExpertScore::ChosenSoftmax, 5, 3},
     GateKind::ClampedSwish,
     64,
     96,
     true},
    {"one_q4", FormatId::Q4_0, {ExpertScore::Softmax, 1, 1}, GateKind::Silu, 32, 32, true},
    {"many_q4k",
     FormatId::Q4_K,
     {ExpertScore::Softmax, 40, 8, 1, 1, true},
     GateKind::Silu,
     256,
     256,
     false},
};

std::string numbered(const char* name, std::uint64_t expert) {
    return fmt::format("{}.{}", name, expert);
}

class Experts : public testing::TestWithParam<ExpertsCase> {
  protected:
    Experts() : weights_(81) {
        const ExpertsCase& c = GetParam();
        const std::uint64_t experts = c.routing.expert_count;
        weights_.add("gate", c.format, experts * c.hidden, c.width);
        weights_.add("up", c.format, experts * c.hidden, c.width);
        weights_.add("down", c.format, experts * c.width, c.hidden);
        weights_.add_vector("selection", experts);
        add_bias("gate_bias", c.hidden);
        add_bias("up_bias", c.hidden);
        add_bias("down_bias", c.width);
    }
    /// All experts' rows, and each once more as a vector of its own.
    void add_bias(const char* name, std::uint64_t columns) {
        const std::uint64_t experts = GetParam().routing.expert_count;
        weights_.add(name, FormatId::F32, experts, columns);
        for (std::uint64_t e = 0; e < experts; ++e)
            weights_.set_vector(numbered(name, e), weights_.row(name, e));
    }
    bool has_selection() const { return GetParam().routing.score == ExpertScore::Sigmoid; }

    graph::Graph routed() const {
        const ExpertsCase& c = GetParam();
        const std::uint64_t experts = c.routing.expert_count;
        return build_graph(weights_, [&](GraphBuilder& g) {
            graph::ExpertsOptions options;
            options.gate = g.weight("gate", experts * c.hidden, c.width);
            options.up = g.weight("up", experts * c.hidden, c.width);
            options.down = g.weight("down", experts * c.width, c.hidden);
            if (has_selection()) options.selection_bias = g.vector("selection", experts);
            if (c.has_biases) {
                options.gate_bias = g.weight("gate_bias", experts, c.hidden);
                options.up_bias = g.weight("up_bias", experts, c.hidden);
                options.down_bias = g.weight("down_bias", experts, c.width);
            }
            options.routing = c.routing;
            options.kind = c.kind;
            const Tensor x = g.input(c.width);
            g.output(g.routed_experts(x, g.input(experts), options));
        });
    }
    /// Every expert for every row.
    graph::Graph separate() const {
        const ExpertsCase& c = GetParam();
        const std::uint64_t experts = c.routing.expert_count;
        return build_graph(weights_, [&](GraphBuilder& g) {
            const Tensor x = g.input(c.width);
            const auto part = [&](const char* name, const char* bias, std::uint64_t e,
                                  std::uint64_t rows, Tensor of) {
                const Tensor all = g.weight(name, experts * rows, g.shape(of).columns);
                graph::MatMulOptions options;
                if (c.has_biases) options.bias = g.vector(numbered(bias, e), rows);
                return g.matmul(g.weight_rows(all, e * rows, rows), of, options);
            };
            for (std::uint64_t e = 0; e < experts; ++e) {
                const Tensor gate = part("gate", "gate_bias", e, c.hidden, x);
                const Tensor up = part("up", "up_bias", e, c.hidden, x);
                const Tensor hidden = g.gated_activation(c.kind, gate, up);
                g.output(part("down", "down_bias", e, c.width, hidden));
            }
        });
    }
    std::vector<float> combine(const std::vector<float>& logits, const Outputs& of_experts,
                               std::size_t rows) const {
        const ExpertsCase& c = GetParam();
        const std::size_t experts = c.routing.expert_count;
        const std::vector<float> bias = weights_.row("selection", 0);
        std::vector<float> room(2 * experts);
        std::vector<graph::ExpertShare> shares(c.routing.used_count);
        std::vector<float> out(rows * c.width, 0.0F);
        for (std::size_t r = 0; r < rows; ++r) {
            graph::choose_experts(c.routing, logits.data() + r * experts,
                                  has_selection() ? bias.data() : nullptr, room.data(),
                                  shares.data());
            for (const auto& [expert, weight] : shares)
                for (std::size_t i = r * c.width; i < (r + 1) * c.width; ++i)
                    out[i] = std::fma(of_experts[expert][i], weight, out[i]);
        }
        return out;
    }
    TestStep step_of(std::uint32_t rows) const {
        Random random(82 + rows);
        TestStep step = TestStep::run_of(0, rows);
        step.inputs = {random_floats(random, rows * GetParam().width),
                       random_floats(random, rows * GetParam().routing.expert_count)};
        for (float& x : step.inputs[1]) x *= 3;
        return step;
    }

    TestWeights weights_;
};

TEST_P(Experts, AreTheSumOfTheirProductsToTheLastBit) {
    const graph::Graph routed = this->routed();
    const graph::Graph separate = this->separate();
    for (const Subject& subject : subjects()) {
        SCOPED_TRACE(subject.name());
        Session session(subject, routed, weights_);
        Session parts(subject, separate, weights_);
        for (const std::uint32_t rows : {1U, 5U, 33U}) {
            const TestStep step = step_of(rows);
            TestStep alone = step;
            alone.inputs.resize(1);
            expect_equal(session.run(step), {combine(step.inputs[1], parts.run(alone), rows)});
        }
    }
}

TEST_P(Experts, AreTheReferences) {
    const graph::Graph graph = routed();
    const bool is_rounded = quant::format_traits(GetParam().format).block_elements > 1;
    for (const Subject& subject : subjects()) {
        SCOPED_TRACE(subject.name());
        const TestStep step = step_of(7);
        const Outputs expected = Session(reference_subject(), graph, weights_).run(step);
        const Outputs actual = Session(subject, graph, weights_).run(step);
        float largest = 0;
        for (const float x : expected[0]) largest = std::max(largest, std::abs(x));
        // What lies between the matrices is rounded; a tie may be broken otherwise there.
        const float terms = is_rounded ? 2000 * largest : 10 * largest;
        expect_near(actual[0], expected[0], std::vector<float>(expected[0].size(), terms));
    }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Experts, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

// A head's product is the MatMul of its columns by its rows of the weight.
TEST(HeadMatMul, IsAMatMulOfEachHeadToTheLastBit) {
    constexpr std::uint32_t kHeads = 3;
    constexpr std::uint32_t kColumns = 64;
    constexpr std::uint32_t kRows = 20;
    for (const FormatId format : {FormatId::F32, FormatId::F16, FormatId::Q8_0}) {
        TestWeights weights(91);
        weights.add("w", format, std::uint64_t{kHeads} * kRows, kColumns);
        const auto record = [&](bool by_head) {
            return build_graph(weights, [&](GraphBuilder& g) {
                const Tensor x = g.input(std::uint64_t{kHeads} * kColumns);
                const Tensor w = g.weight("w", std::uint64_t{kHeads} * kRows, kColumns);
                if (by_head) return g.output(g.head_matmul(w, x, kHeads));
                Tensor joined =
                    g.matmul(g.weight_rows(w, 0, kRows), g.slice_heads(x, 1, 0, kColumns));
                for (std::uint32_t head = 1; head < kHeads; ++head)
                    joined = g.join_heads(joined,
                                          g.matmul(g.weight_rows(w, head * kRows, kRows),
                                                   g.slice_heads(x, 1, head * kColumns, kColumns)),
                                          1);
                g.output(joined);
            });
        };
        const graph::Graph by_head = record(true);
        const graph::Graph apart = record(false);
        for (const std::uint32_t rows : {1U, 9U}) {
            Random random(92);
            TestStep step = TestStep::run_of(0, rows);
            step.inputs = {random_floats(random, std::size_t{rows} * kHeads * kColumns)};
            const Outputs reference = Session(reference_subject(), by_head, weights).run(step);
            for (const Subject& subject : subjects()) {
                SCOPED_TRACE(subject.name());
                const Outputs actual = Session(subject, by_head, weights).run(step);
                expect_equal(actual, Session(subject, apart, weights).run(step));
                expect_near(actual[0], reference[0],
                            std::vector<float>(reference[0].size(), 100.0F));
            }
        }
    }
}

TEST(SliceAndJoinHeads, TakeHeadsApartAndPutThemTogether) {
    const TestWeights weights(0);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        const Tensor x = g.input(10);  // two heads of 5
        const Tensor left = g.slice_heads(x, 2, 0, 2);
        const Tensor right = g.slice_heads(x, 2, 2, 3);
        g.output(g.join_heads(right, left, 2));
    });
    TestStep step = TestStep::run_of(0, 2);
    step.inputs = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}};
    const Outputs expected = {
        {2, 3, 4, 0, 1, 7, 8, 9, 5, 6, 12, 13, 14, 10, 11, 17, 18, 19, 15, 16}};
    expect_equal(Session(reference_subject(), graph, weights).run(step), expected);
    for (const Subject& subject : subjects())
        expect_equal(Session(subject, graph, weights).run(step), expected);
}

}  // namespace
}  // namespace artel::conformance
