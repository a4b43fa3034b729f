// SPDX-License-Identifier: Apache-2.0
#include "conformance/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.hpp"

namespace artel::conformance {

namespace {

void require(const Error& error) {
    if (!error.ok()) fmt::print(stderr, "{}\n", error.ToString());
    ARTEL_CHECK(error.ok(), "a test's own setup must work");
}

template <class T>
T require(Result<T> result) {
    require(result.status());
    return std::move(result).value();
}

}  // namespace

const std::vector<Subject>& subjects() {
    static const std::vector<Subject> kAll = [] {
        std::vector<Subject> found;
        for (const std::string_view name : backends::backend_names())
            for (const std::string isa : {"scalar", "avx2"})
                for (const std::uint32_t threads : {1U, 2U})
                    if (name != "reference" &&
                        backends::create_backend(name, {.threads = threads, .isa = isa}).ok())
                        found.push_back({std::string(name), isa, threads});
        return found;
    }();
    return kAll;
}

TestStep TestStep::run_of(std::uint32_t first_position, std::uint32_t rows) {
    TestStep step;
    for (std::uint32_t row = 0; row < rows; ++row) {
        step.positions.push_back(first_position + row);
        step.sequences.push_back(0);
    }
    return step;
}

Session::Session(const Subject& subject, const graph::Graph& graph, const TestWeights& weights,
                 graph::RowCounts rows_max)
    : graph_(graph) {
    backend_ = require(backends::create_backend(subject.backend,
                                                {.threads = subject.threads, .isa = subject.isa}));
    if (!subject.isa.empty())
        ARTEL_CHECK(backend_->describe().isa == subject.isa, "a forced instruction set is active");
    limits_ = {.rows = rows_max, .context = kTestContext, .pages = {}};
    upload_weights(graph, weights);
    std::vector<backends::Buffer*> state;
    for (const graph::StateGroup& group : graph.groups) {
        limits_.pages.push_back(kTestPages);
        const std::uint64_t bytes = kTestPages * graph::page_layout(group).page_bytes;
        state_.push_back(require(backend_->allocate(bytes)));
        // Bytes never written are NaN, which any use of them would show.
        const std::vector<std::byte> nan(bytes, std::byte{0xFF});
        require(backend_->upload(*state_.back(), 0, nan));
        state.push_back(state_.back().get());
    }
    require(backend_->supports(graph));
    prepared_ = require(backend_->prepare(graph, rows_max, {.weights = bound_, .state = state}));
}

void Session::upload_weights(const graph::Graph& graph, const TestWeights& weights) {
    for (const graph::Weight& weight : graph.weights) {
        const auto layout = require(backend_->layout(weight.format, weight.rows, weight.columns));
        auto buffer = require(backend_->allocate(layout.bytes));
        const std::span<const std::byte> bytes = weights.bytes(weight.name);
        const std::uint64_t row_bytes = weight.bytes / weight.rows;
        // The second part first, in odd pieces: loading streams in any order.
        const std::uint64_t half = weight.rows / 2;
        for (const auto& [begin, end] :
             {std::pair(half, weight.rows), std::pair(std::uint64_t{0}, half)})
            for (std::uint64_t row = begin; row < end; row += 5) {
                const std::uint64_t count = std::min<std::uint64_t>(5, end - row);
                require(backend_->upload_rows(*buffer, layout, row,
                                              bytes.subspan(row * row_bytes, count * row_bytes)));
            }
        bound_.push_back({buffer.get(), layout});
        buffers_.push_back(std::move(buffer));
    }
}

Outputs Session::run(const TestStep& step) {
    std::vector<graph::PageTable> tables;
    for (const TestStep::Table& table : step.tables)
        tables.push_back({table.first_page, table.pages});
    const std::vector<std::span<const float>> inputs(step.inputs.begin(), step.inputs.end());
    Outputs outputs;
    const graph::RowCounts rows{step.positions.size(), step.logit_rows.size()};
    for (const graph::Tensor output : graph_.outputs) {
        const graph::Shape& shape = graph_.shape(output);
        outputs.emplace_back(graph::row_count(shape, rows) * shape.columns, std::nanf(""));
    }
    const std::vector<std::span<float>> targets(outputs.begin(), outputs.end());
    const graph::RunInputs borrowed{.positions = step.positions,
                                    .sequences = step.sequences,
                                    .tokens = step.tokens,
                                    .logit_rows = step.logit_rows,
                                    .page_tables = tables,
                                    .inputs = inputs,
                                    .outputs = targets};
    require(graph::check_run_inputs(graph_, limits_, borrowed));
    require(backend_->run(*prepared_, borrowed));
    require(backend_->wait());
    return outputs;
}

std::vector<std::byte> Session::state(std::size_t group) const {
    std::vector<std::byte> bytes(state_[group]->bytes());
    require(backend_->download(*state_[group], 0, bytes));
    return bytes;
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                 const std::vector<float>& terms) {
    constexpr double kTolerance = 1e-5;
    ASSERT_EQ(actual.size(), expected.size());
    ASSERT_EQ(terms.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const double difference =
            std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
        // Not (difference <= ...) is true for NaN.
        if (!(difference <= kTolerance * static_cast<double>(terms[i]) + 1e-30)) {
            ADD_FAILURE() << "element " << i << ": " << actual[i] << ", expected " << expected[i]
                          << " within 1e-5 of " << terms[i];
            return;
        }
    }
}

void expect_equal(const Outputs& actual, const Outputs& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t k = 0; k < actual.size(); ++k) {
        ASSERT_EQ(actual[k].size(), expected[k].size());
        for (std::size_t i = 0; i < actual[k].size(); ++i)
            if (std::bit_cast<std::uint32_t>(actual[k][i]) !=
                std::bit_cast<std::uint32_t>(expected[k][i])) {
                ADD_FAILURE() << "output " << k << ", element " << i << ": " << actual[k][i]
                              << ", expected the bytes of " << expected[k][i];
                return;
            }
    }
}

}  // namespace artel::conformance
