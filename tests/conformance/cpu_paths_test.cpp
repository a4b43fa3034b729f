// SPDX-License-Identifier: Apache-2.0
// The paths of the CPU class against each other, bit for bit, over shapes and sizes that only they
// can disagree on: tails of vectors, tiles and groups, the largest products, more threads than
// pieces. exact_order_test.cpp compares them with the rules themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/exact_model.hpp"
#include "conformance/session.hpp"
#include "quant/formats.hpp"

namespace artel::conformance {
namespace {

using graph::GraphBuilder;
using graph::Tensor;

/// The cpu backend in every way this machine can run it; the first is scalar with one thread.
std::vector<Subject> cpu_class() {
    std::vector<Subject> subjects;
    for (const std::string isa : {"scalar", "avx2"})
        for (const std::uint32_t threads : {1U, 2U, 3U})
            if (backends::create_backend("cpu", {.threads = threads, .isa = isa}).ok())
                subjects.push_back({"cpu", isa, threads});
    return subjects;
}

/// Runs `steps` on every subject; all outputs and pages must be those of the first.
void expect_one_answer(const graph::Graph& graph, const TestWeights& weights,
                       const std::vector<TestStep>& steps) {
    const std::vector<Subject> subjects = cpu_class();
    std::vector<Outputs> expected;
    std::vector<std::vector<std::byte>> state;
    for (const Subject& subject : subjects) {
        SCOPED_TRACE(subject.name());
        Session session(subject, graph, weights);
        const bool is_first = &subject == &subjects.front();
        for (std::size_t i = 0; i < steps.size(); ++i) {
            Outputs outputs = session.run(steps[i]);
            if (is_first)
                expected.push_back(std::move(outputs));
            else
                expect_equal(outputs, expected[i]);
        }
        for (std::size_t g = 0; g < graph.groups.size(); ++g) {
            if (is_first)
                state.push_back(session.state(g));
            else
                EXPECT_EQ(session.state(g), state[g]);
        }
    }
}

TEST(CpuPaths, CoversTheInstructionSetsOfThisMachine) {
    const std::vector<Subject> subjects = cpu_class();
    ASSERT_FALSE(subjects.empty());
    EXPECT_EQ(subjects.front().isa, "scalar");
#if defined(__x86_64__)
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    EXPECT_EQ(subjects.back().isa, has_avx2 ? "avx2" : "scalar");
#endif
}

class MatMulPaths : public testing::TestWithParam<quant::FormatId> {
  protected:
    std::uint64_t columns_of(std::uint64_t blocks) const {
        return blocks *
               std::max<std::uint64_t>(32, quant::format_traits(GetParam()).block_elements);
    }
    graph::Graph matmul_graph(const TestWeights& weights, std::uint64_t outputs,
                              std::uint64_t columns) const {
        return build_graph(weights, [&](GraphBuilder& g) {
            g.output(g.matmul(g.weight("w", outputs, columns), g.input(columns)));
        });
    }
};

TEST_P(MatMulPaths, HasOneAnswerForEveryShape) {
    for (const std::uint32_t rows : {1U, 3U, 17U})
        for (const std::uint64_t outputs : {1U, 7U, 33U})
            for (const std::uint64_t blocks : {1U, 3U}) {
                SCOPED_TRACE(fmt::format("{} rows, {} outputs, {} blocks", rows, outputs, blocks));
                const std::uint64_t columns = columns_of(blocks);
                TestWeights weights(rows * 100 + outputs);
                weights.add("w", GetParam(), outputs, columns);
                Random random(21);
                TestStep step = TestStep::run_of(0, rows);
                step.inputs = {random_floats(random, rows * columns)};
                expect_one_answer(matmul_graph(weights, outputs, columns), weights, {step});
            }
}

/// The largest quants and sub-scales that the format has, with scales as they are.
template <class F>
void enlarge(std::vector<std::byte>& bytes) {
    if constexpr (F::kBlockElements > 1)
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(typename F::Block)) {
            auto block = quant::load_block<F>(bytes.data() + at, 0);
            const int most = F::kGgufId == quant::Q8_0::kGgufId ? 0x80 : 0xFF;
            if constexpr (requires { block.quants; })
                std::memset(block.quants, most, sizeof(block.quants));
            if constexpr (requires { block.low_bits; })
                std::memset(block.low_bits, most, sizeof(block.low_bits));
            if constexpr (requires { block.high_bits; })
                std::memset(block.high_bits, most, sizeof(block.high_bits));
            if constexpr (requires { block.packed_scales; })
                std::memset(block.packed_scales, most, sizeof(block.packed_scales));
            if constexpr (requires { block.scales; })
                std::memset(block.scales, 0x80, sizeof(block.scales));
            std::memcpy(bytes.data() + at, &block, sizeof(block));
        }
}

// The largest products: nothing may saturate.
TEST_P(MatMulPaths, TakesTheLargestQuantsAndActivations) {
    const std::uint64_t columns = columns_of(1);
    TestWeights weights(41);
    weights.add("w", GetParam(), 8, columns);
    quant::with_format(GetParam(), [&]<quant::Format F>() { enlarge<F>(weights.bytes("w")); });
    const graph::Graph graph = matmul_graph(weights, 8, columns);
    TestStep step = TestStep::run_of(0, 2);
    step.inputs = {std::vector<float>(2 * columns, 1.0F)};
    std::fill_n(step.inputs[0].begin(), columns, -1.0F);
    const std::size_t row_bytes = weights.bytes("w").size() / 8;
    Outputs expected(1);
    for (std::size_t r = 0; r < 2; ++r)
        for (std::size_t n = 0; n < 8; ++n) {
            const std::vector<float> x(columns, r == 0 ? -1.0F : 1.0F);
            expected[0].push_back(exact_dot(
                GetParam(), std::span(weights.bytes("w")).subspan(n * row_bytes, row_bytes), x));
        }
    for (const Subject& subject : cpu_class()) {
        SCOPED_TRACE(subject.name());
        expect_equal(Session(subject, graph, weights).run(step), expected);
    }
}

TEST_P(MatMulPaths, ARowIsTheSameAloneAndAmongOthers) {
    const std::uint64_t columns = columns_of(3);
    TestWeights weights(51);
    weights.add("w", GetParam(), 33, columns);
    const graph::Graph graph = matmul_graph(weights, 33, columns);
    Random random(52);
    TestStep all = TestStep::run_of(0, 33);
    all.inputs = {random_floats(random, 33 * columns)};
    for (const Subject& subject : cpu_class()) {
        SCOPED_TRACE(subject.name());
        Session session(subject, graph, weights);
        const Outputs together = session.run(all);
        for (const std::size_t row : {0U, 2U, 3U, 16U, 32U}) {
            TestStep one = TestStep::run_of(0, 1);
            const float* first = all.inputs[0].data() + row * columns;
            one.inputs = {std::vector<float>(first, first + columns)};
            const float* expected = together[0].data() + row * 33;
            expect_equal(session.run(one), {std::vector<float>(expected, expected + 33)});
        }
    }
}

std::vector<quant::FormatId> every_format() {
    std::vector<quant::FormatId> formats;
    for (const quant::FormatTraits& traits : quant::all_formats()) formats.push_back(traits.id);
    return formats;
}

INSTANTIATE_TEST_SUITE_P(Formats, MatMulPaths, testing::ValuesIn(every_format()),
                         [](const auto& param) {
                             return std::string(quant::format_traits(param.param).name);
                         });

TEST(OpPaths, HaveOneAnswer) {
    for (const std::uint64_t columns : {1U, 7U, 17U, 40U, 100U, 576U}) {
        SCOPED_TRACE(columns);
        TestWeights weights(61);
        weights.add_vector("norm", columns);
        weights.add_vector("bias", columns);
        const graph::Graph graph = build_graph(weights, [&](GraphBuilder& g) {
            const Tensor a = g.input(columns);
            const Tensor b = g.input(columns);
            g.output(g.rms_norm(a, g.vector("norm", columns), 1e-6F));
            g.output(g.add(a, b));
            g.output(g.multiply(a, b));
            g.output(g.scale(a, 0.3F));
            g.output(g.soft_cap(a, 5.0F));
            g.output(g.gated_activation(graph::GateKind::Silu, a, b));
            g.output(g.gated_activation(graph::GateKind::GeluTanh, a, b));
            g.output(g.gated_activation(graph::GateKind::ClampedSwish, a, b));
            g.output(g.activate(graph::ActivationKind::GeluErf, a));
            g.output(g.layer_norm(a, g.vector("norm", columns), std::nullopt, 1e-6F));
            g.output(g.layer_norm(b, g.vector("norm", columns), g.vector("bias", columns), 1e-6F));
        });
        Random random(62);
        TestStep step = TestStep::run_of(0, 37);
        for (int i = 0; i < 2; ++i) {
            step.inputs.push_back(random_floats(random, 37 * columns));
            // From tiny to where exp ends.
            for (float& x : step.inputs.back())
                x *= static_cast<float>(std::pow(10.0, 4 * random.unit() - 2));
        }
        step.inputs[0][0] = 200;
        step.inputs[0].back() = -200;
        expect_one_answer(graph, weights, {step});
    }
}

struct AttentionShape {
    graph::LayerState layer;
    std::uint32_t heads;
    std::uint32_t window;
    float softcap;
};

TEST(AttentionPaths, HasOneAnswerHoweverTheTokensWereCut) {
    const AttentionShape cases[] = {{{3, 64, 64}, 9, 0, 0},        {{1, 20, 12}, 5, 0, 0},
                                    {{1, 256, 256}, 4, 70, 0},     {{2, 8, 76}, 40, 0, 5},
                                    {{1, 80, 64, true}, 20, 0, 0}, {{1, 1, 1}, 1, 1, 0}};
    constexpr std::uint32_t kTokens = 150;
    for (const AttentionShape& c : cases)
        for (const auto type : {graph::StateType::F16, graph::StateType::F32}) {
            SCOPED_TRACE(fmt::format("{} heads, key_dim {}", c.heads, c.layer.key_dim));
            const TestWeights weights(0);
            const graph::StateGroupSpec group{
                .kind = c.window > 0 ? graph::StateKind::Windowed : graph::StateKind::Paged,
                .window = c.window};
            const graph::Graph graph = build_graph(weights, {group}, type, [&](GraphBuilder& g) {
                const Tensor query = g.input(std::uint64_t{c.heads} * c.layer.key_dim);
                const Tensor keys = g.input(std::uint64_t{c.layer.kv_head_count} * c.layer.key_dim);
                const Tensor values =
                    g.input(std::uint64_t{c.layer.kv_head_count} * c.layer.value_dim);
                const graph::StateSlot slot = g.add_layer_state(0, c.layer);
                g.store_state(slot, keys, values);
                g.output(g.attention(slot, query,
                                     {.head_count = c.heads,
                                      .scale = 1 / std::sqrt(float(c.layer.key_dim)),
                                      .softcap = c.softcap}));
            });
            Random random(71);
            std::vector<std::vector<float>> inputs;
            for (const Tensor input : graph.inputs)
                inputs.push_back(random_floats(random, kTokens * graph.shape(input).columns));
            // Cuts of the same tokens; joined outputs must agree.
            std::vector<std::vector<float>> joined;
            for (const std::uint32_t chunk : {1U, 7U, 64U}) {
                std::vector<TestStep> steps;
                for (std::uint32_t first = 0; first < kTokens; first += chunk) {
                    const std::uint32_t count = std::min(chunk, kTokens - first);
                    TestStep step = TestStep::run_of(first, count);
                    for (std::size_t i = 0; i < inputs.size(); ++i) {
                        const std::size_t columns = inputs[i].size() / kTokens;
                        const auto begin = inputs[i].begin() + std::ptrdiff_t(first * columns);
                        step.inputs.emplace_back(begin, begin + std::ptrdiff_t(count * columns));
                    }
                    step.tables = {{.first_page = 0, .pages = {11, 3, 17}}};
                    steps.push_back(std::move(step));
                }
                if (chunk == 7) expect_one_answer(graph, weights, steps);
                Session session(cpu_class().back(), graph, weights);
                joined.emplace_back();
                for (const TestStep& step : steps) {
                    const Outputs outputs = session.run(step);
                    joined.back().insert(joined.back().end(), outputs[0].begin(), outputs[0].end());
                }
            }
            expect_equal({joined[1], joined[2]}, {joined[0], joined[0]});
        }
}

}  // namespace
}  // namespace artel::conformance
