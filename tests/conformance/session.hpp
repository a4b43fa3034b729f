// SPDX-License-Identifier: Apache-2.0
// Session: one graph on one backend, with its weights and pages, as a stage would hold it.
// TestStep owns what RunInputs borrows. Every step passes check_run_inputs first.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "conformance/test_weights.hpp"
#include "graph/graph.hpp"

namespace artel::conformance {

/// A backend as it is tested: its name, an instruction set forced, threads.
struct Subject {
    std::string backend;
    std::string isa;
    std::uint32_t threads = 1;
    std::string name() const {  // "cpu_avx2_t2"
        return backend + (isa.empty() ? "" : "_" + isa) + "_t" + std::to_string(threads);
    }
    friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name(); }
};
/// All backends of this binary but the reference, in every way that this machine can run.
const std::vector<Subject>& subjects();
inline Subject reference_subject() {
    return {.backend = "reference", .isa = "", .threads = 1};
}

struct TestStep {
    std::vector<std::uint32_t> positions;
    std::vector<std::uint32_t> sequences;
    std::vector<std::uint32_t> tokens;
    std::vector<std::uint32_t> logit_rows;
    struct Table {
        std::uint32_t first_page = 0;
        std::vector<std::uint32_t> pages;
    };
    std::vector<Table> tables;               // (sequences, groups)
    std::vector<std::vector<float>> inputs;  // of each Graph::inputs

    /// `rows` rows of one sequence from `first_position` on.
    static TestStep run_of(std::uint32_t first_position, std::uint32_t rows);
};

using Outputs = std::vector<std::vector<float>>;  // of each Graph::outputs

constexpr std::uint32_t kTestContext = 4096;
constexpr std::uint32_t kTestPages = 24;  // of each group

class Session {
  public:
    /// Fails the test at once where anything does. Weights go up in pieces of uneven size.
    Session(const Subject& subject, const graph::Graph& graph, const TestWeights& weights,
            graph::RowCounts rows_max = {64, 64});
    Outputs run(const TestStep& step);
    /// All bytes of a group's pages.
    std::vector<std::byte> state(std::size_t group) const;
    backends::Backend& backend() { return *backend_; }

  private:
    void upload_weights(const graph::Graph& graph, const TestWeights& weights);

    graph::Graph graph_;
    graph::RunLimits limits_;
    std::unique_ptr<backends::Backend> backend_;
    std::vector<std::unique_ptr<backends::Buffer>> buffers_;  // of weights
    std::vector<backends::Bindings::BoundWeight> bound_;
    std::vector<std::unique_ptr<backends::Buffer>> state_;  // of groups
    std::unique_ptr<backends::PreparedGraph> prepared_;
};

/// The graph that `record` makes.
template <class Record>
graph::Graph build_graph(const TestWeights& weights, std::vector<graph::StateGroupSpec> groups,
                         graph::StateType type, Record record) {
    graph::GraphBuilder builder(weights, groups, type);
    record(builder);
    Result<graph::Graph> graph = builder.finish();
    if (!graph.ok()) fmt::print(stderr, "{}\n", graph.status().ToString());
    return std::move(graph).value();
}
template <class Record>
graph::Graph build_graph(const TestWeights& weights, Record record) {
    return build_graph(weights, {}, graph::StateType::F32, record);
}

/// |actual - expected| <= 1e-5 * terms, element by element; terms: the sum of absolute terms.
void expect_near(const std::vector<float>& actual, const std::vector<float>& expected,
                 const std::vector<float>& terms);
/// The same bytes.
void expect_equal(const Outputs& actual, const Outputs& expected);

}  // namespace artel::conformance
