// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "graph/graph.hpp"

namespace artel::graph {

namespace {

Error check_counts(const Graph& graph, const RunLimits& limits, const RunInputs& step) {
    const RowCounts rows = step.rows();
    if (rows.step == 0 || rows.step > limits.rows.step)
        return invalid_argument("{} rows, expected 1 to {}", rows.step, limits.rows.step);
    if (rows.logits > limits.rows.logits)
        return invalid_argument("{} rows want logits, expected at most {}", rows.logits,
                                limits.rows.logits);
    if (step.sequences.size() != rows.step)
        return invalid_argument("sequences of {} rows, expected {}", step.sequences.size(),
                                rows.step);
    const std::size_t tokens = graph.vocabulary_size > 0 ? rows.step : 0;
    if (step.tokens.size() != tokens)
        return invalid_argument("{} tokens, expected {}", step.tokens.size(), tokens);
    const std::size_t groups = graph.groups.size();
    if (groups == 0 ? !step.page_tables.empty() : step.page_tables.size() % groups != 0)
        return invalid_argument("{} page tables for {} groups", step.page_tables.size(), groups);
    if (limits.pages.size() != groups)
        return internal_error("page limits of {} groups, expected {}", limits.pages.size(), groups);
    return ok();
}

Error check_logit_rows(const RunInputs& step) {
    for (std::size_t i = 0; i < step.logit_rows.size(); ++i) {
        const std::uint32_t row = step.logit_rows[i];
        if (row >= step.positions.size() || (i > 0 && row <= step.logit_rows[i - 1]))
            return invalid_argument("logit row {} after {} of {} rows, expected ascending rows",
                                    row, i > 0 ? step.logit_rows[i - 1] : 0, step.positions.size());
    }
    return ok();
}

Error check_tokens(const Graph& graph, const RunInputs& step) {
    for (std::size_t row = 0; row < step.tokens.size(); ++row)
        if (step.tokens[row] >= graph.vocabulary_size)
            return invalid_argument("row {}: token {}, expected below {}", row, step.tokens[row],
                                    graph.vocabulary_size);
    return ok();
}

/// Positions below the context; a sequence's rows follow each other.
Error check_positions(const Graph& graph, const RunLimits& limits, const RunInputs& step) {
    const std::size_t rows = step.positions.size();
    const std::size_t sequences =
        graph.groups.empty() ? rows : step.page_tables.size() / graph.groups.size();
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::vector<std::uint64_t> next(sequences, kNone);  // position of a sequence
    for (std::size_t row = 0; row < rows; ++row) {
        const std::uint32_t position = step.positions[row];
        const std::uint32_t sequence = step.sequences[row];
        if (position >= limits.context)
            return invalid_argument("row {}: position {}, expected below {}", row, position,
                                    limits.context);
        if (sequence >= next.size())
            return invalid_argument("row {}: sequence {}, expected below {}", row, sequence,
                                    next.size());
        if (next[sequence] != kNone && next[sequence] != position)
            return invalid_argument("row {}: position {} of sequence {}, expected {}", row,
                                    position, sequence, next[sequence]);
        next[sequence] = std::uint64_t{position} + 1;
    }
    return ok();
}

/// Each row's visible positions have pages, and no two rows store at one place.
Error check_pages(const Graph& graph, const RunLimits& limits, const RunInputs& step,
                  std::uint32_t group) {
    const std::uint32_t groups = static_cast<std::uint32_t>(graph.groups.size());
    for (std::size_t i = group; i < step.page_tables.size(); i += groups)
        for (const std::uint32_t page : step.page_tables[i].pages)
            if (page >= limits.pages[group])
                return invalid_argument("group {}: page {} of sequence {}, expected below {}",
                                        group, page, i / groups, limits.pages[group]);
    std::vector<std::uint64_t> places;
    places.reserve(step.positions.size());
    for (std::size_t row = 0; row < step.positions.size(); ++row) {
        const std::uint32_t position = step.positions[row];
        const PageTable& table = step.table(graph, step.sequences[row], group);
        const std::uint32_t first =
            first_visible(position, graph.groups[group].spec.window) / kPageTokens;
        const std::uint32_t last = position / kPageTokens;
        const std::uint64_t end = std::uint64_t{table.first_page} + table.pages.size();
        if (table.first_page > first || last >= end)
            return invalid_argument(
                "row {}: position {} needs pages {} to {} of group {}, the table has {} to {}", row,
                position, first, last, group, table.first_page, end);
        places.push_back(std::uint64_t{table.pages[last - table.first_page]} * kPageTokens +
                         position % kPageTokens);
    }
    std::sort(places.begin(), places.end());
    const auto twice = std::adjacent_find(places.begin(), places.end());
    if (twice != places.end())
        return invalid_argument("group {}: two rows store at offset {} of page {}", group,
                                *twice % kPageTokens, *twice / kPageTokens);
    return ok();
}

template <class Span>
Error check_sizes(const Graph& graph, const std::vector<Tensor>& tensors,
                  std::span<const Span> given, const RowCounts& rows, std::string_view what) {
    if (given.size() != tensors.size())
        return invalid_argument("{} {}s, expected {}", given.size(), what, tensors.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        const Shape& shape = graph.shape(tensors[i]);
        const std::uint64_t wanted = row_count(shape, rows) * shape.columns;
        if (given[i].size() != wanted)
            return invalid_argument("{} {}: {} numbers, expected {}", what, i, given[i].size(),
                                    wanted);
    }
    return ok();
}

Error check_finite(const RunInputs& step) {
    for (const std::span<const float> input : step.inputs)
        for (const float x : input)
            if (!std::isfinite(x)) return invalid_argument("activations hold {}", x);
    return ok();
}

}  // namespace

Error check_run_inputs(const Graph& graph, const RunLimits& limits, const RunInputs& inputs) {
    ARTEL_TRY(check_counts(graph, limits, inputs));
    ARTEL_TRY(check_logit_rows(inputs));
    ARTEL_TRY(check_tokens(graph, inputs));
    ARTEL_TRY(check_positions(graph, limits, inputs));
    for (std::uint32_t group = 0; group < graph.groups.size(); ++group)
        if (!graph.groups[group].layers.empty())
            ARTEL_TRY(check_pages(graph, limits, inputs, group));
    ARTEL_TRY(check_sizes(graph, graph.inputs, inputs.inputs, inputs.rows(), "input"));
    ARTEL_TRY(check_sizes(graph, graph.outputs, inputs.outputs, inputs.rows(), "output"));
    return check_finite(inputs);
}

}  // namespace artel::graph
