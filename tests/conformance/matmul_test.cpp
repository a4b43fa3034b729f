// SPDX-License-Identifier: Apache-2.0
// MatMul and EmbedRows, every format, against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "conformance/session.hpp"
#include "graph/activation_rounding.hpp"

namespace artel::conformance {
namespace {

using graph::GraphBuilder;
using graph::Tensor;

struct MatMulShape {
    std::uint32_t rows;     // of x
    std::uint64_t blocks;   // columns, in blocks of the format (32 where a block is one element)
    std::uint64_t outputs;  // rows of the weight
};
constexpr MatMulShape kShapes[] = {{1, 1, 1},  {1, 3, 33}, {2, 1, 7},  {3, 5, 8},   {4, 2, 9},
                                   {5, 1, 31}, {7, 4, 32}, {16, 1, 1}, {33, 2, 67}, {64, 3, 40}};

std::uint64_t columns_of(quant::FormatId format, std::uint64_t blocks) {
    return blocks * std::max<std::uint64_t>(32, quant::format_traits(format).block_elements);
}

using Param = std::tuple<Subject, quant::FormatId>;

std::string param_name(const testing::TestParamInfo<Param>& param) {
    const auto& [subject, format] = param.param;
    return std::string(quant::format_traits(format).name) + "_" + subject.name();
}

std::vector<quant::FormatId> every_format() {
    std::vector<quant::FormatId> formats;
    for (const quant::FormatTraits& traits : quant::all_formats()) formats.push_back(traits.id);
    return formats;
}

/// For each output: the sum over columns of |x * w|.
std::vector<float> absolute_terms(const TestWeights& weights, const std::vector<float>& x,
                                  std::uint32_t rows, std::uint64_t outputs) {
    const std::size_t columns = x.size() / rows;
    std::vector<float> terms(rows * outputs);
    for (std::uint64_t n = 0; n < outputs; ++n) {
        const std::vector<float> w = weights.row("w", n);
        for (std::uint32_t r = 0; r < rows; ++r)
            for (std::size_t k = 0; k < columns; ++k)
                terms[r * outputs + n] += std::abs(x[r * columns + k] * w[k]);
    }
    return terms;
}

class MatMul : public testing::TestWithParam<Param> {
  protected:
    Subject subject() const { return std::get<0>(GetParam()); }
    quant::FormatId format() const { return std::get<1>(GetParam()); }
};
class EmbedRows : public MatMul {};

TEST_P(MatMul, IsTheReferences) {
    for (const MatMulShape& shape : kShapes) {
        SCOPED_TRACE(fmt::format("m{}_b{}_n{}", shape.rows, shape.blocks, shape.outputs));
        const std::uint64_t columns = columns_of(format(), shape.blocks);
        TestWeights weights(shape.rows * 1000 + shape.outputs);
        weights.add("w", format(), shape.outputs, columns);
        const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
            g.output(g.matmul(g.weight("w", shape.outputs, columns), g.input(columns)));
        });
        Random random(7);
        TestStep step = TestStep::run_of(0, shape.rows);
        step.inputs = {random_floats(random, shape.rows * columns)};
        const Outputs expected = Session(reference_subject(), graph, weights).run(step);
        const Outputs actual = Session(subject(), graph, weights).run(step);
        expect_near(actual[0], expected[0],
                    absolute_terms(weights, step.inputs[0], shape.rows, shape.outputs));
    }
}

// A fused weight is used by parts, wherever they begin; scale and bias come after the sum.
TEST_P(MatMul, TakesPartsScaleAndBias) {
    const std::uint64_t columns = columns_of(format(), 2);
    TestWeights weights(11);
    weights.add("w", format(), 61, columns);
    weights.set_vector("scale", {0.375F});
    weights.add_vector("bias", 29);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        const Tensor whole = g.weight("w", 61, columns);
        const Tensor x = g.input(columns);
        g.output(g.matmul(g.weight_rows(whole, 13, 29), x,
                          {.scale = g.vector("scale", 1), .bias = g.vector("bias", 29)}));
        g.output(g.matmul(g.weight_rows(g.weight_rows(whole, 13, 29), 11, 18), x));
    });
    Random random(12);
    TestStep step = TestStep::run_of(0, 3);
    step.inputs = {random_floats(random, 3 * columns)};
    const Outputs expected = Session(reference_subject(), graph, weights).run(step);
    const Outputs actual = Session(subject(), graph, weights).run(step);
    // (3, 61) terms; the parts are columns [13, 42) and [24, 42) of them.
    const std::vector<float> terms = absolute_terms(weights, step.inputs[0], 3, 61);
    for (std::size_t part = 0; part < 2; ++part) {
        const std::size_t first = part == 0 ? 13 : 24;
        const std::size_t count = part == 0 ? 29 : 18;
        std::vector<float> wanted;
        for (std::size_t r = 0; r < 3; ++r)
            for (std::size_t n = first; n < first + count; ++n)
                wanted.push_back(terms[r * 61 + n] + (part == 0 ? 1.0F : 0.0F));
        expect_near(actual[part], expected[part], wanted);
    }
}

// Zeros, tiny and huge blocks: the rounding rule's edges.
TEST_P(MatMul, RoundsExtremeActivationsByTheRule) {
    const std::uint64_t columns = columns_of(format(), 8);
    TestWeights weights(13);
    weights.add("w", format(), 9, columns);
    const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
        g.output(g.matmul(g.weight("w", 9, columns), g.input(columns)));
    });
    Random random(14);
    TestStep step = TestStep::run_of(0, 1);
    step.inputs = {random_floats(random, columns)};
    const float sizes[] = {0, 0x1p-130F, 0x1p-119F, 1e-20F, 1, 1e20F, 0x1.8p-120F, -0.0F};
    for (std::size_t k = 0; k < columns; ++k) step.inputs[0][k] *= sizes[k / 32 % 8];
    const Outputs expected = Session(reference_subject(), graph, weights).run(step);
    const Outputs actual = Session(subject(), graph, weights).run(step);
    expect_near(actual[0], expected[0], absolute_terms(weights, step.inputs[0], 1, 9));
}

TEST_P(EmbedRows, IsTheReferences) {
    const std::uint64_t columns = columns_of(format(), 3);
    TestWeights weights(15);
    weights.add("w", format(), 45, columns);
    for (const float scale : {1.0F, 25.298221F}) {
        const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
            g.output(g.embed_rows(g.weight("w", 45, columns), scale));
        });
        TestStep step = TestStep::run_of(0, 6);
        step.tokens = {44, 0, 7, 7, 8, 31};
        const Outputs expected = Session(reference_subject(), graph, weights).run(step);
        const Outputs actual = Session(subject(), graph, weights).run(step);
        expect_equal(actual, expected);
    }
}

INSTANTIATE_TEST_SUITE_P(Conformance, MatMul,
                         testing::Combine(testing::ValuesIn(subjects()),
                                          testing::ValuesIn(every_format())),
                         param_name);
INSTANTIATE_TEST_SUITE_P(Conformance, EmbedRows,
                         testing::Combine(testing::ValuesIn(subjects()),
                                          testing::ValuesIn(every_format())),
                         param_name);

// Without this, a backend that is not registered would pass every test above.
TEST(Subjects, HoldTheCpuBackendWithOneThreadAndTwo) {
    for (const std::uint32_t threads : {1U, 2U}) {
        const auto is_wanted = [&](const Subject& subject) {
            return subject.backend == "cpu" && subject.isa == "scalar" &&
                   subject.threads == threads;
        };
        EXPECT_TRUE(std::any_of(subjects().begin(), subjects().end(), is_wanted));
    }
}

}  // namespace
}  // namespace artel::conformance
