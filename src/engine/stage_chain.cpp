// SPDX-License-Identifier: Apache-2.0
#include "engine/stage_chain.hpp"

#include <algorithm>
#include <numeric>

namespace artel::engine {

namespace {

/// Pages that one sequence can need at once in a group.
std::uint32_t pages_per_sequence(const graph::StateGroupSpec& group, std::uint32_t context,
                                 std::uint32_t rows_max) {
    const std::uint32_t all = context / graph::kPageTokens + 1;
    if (group.kind != graph::StateKind::Windowed) return all;
    // The window and the step's rows, and a page begun at either side.
    const std::uint64_t seen = std::uint64_t{group.window} + rows_max;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(all, seen / graph::kPageTokens + 2));
}

std::vector<StageOptions> stage_options(const models::ModelShape& shape,
                                        const ChainOptions& options) {
    const std::uint32_t context = options.context != 0 ? options.context : shape.context_length;
    std::vector<std::uint32_t> pages;
    for (const graph::StateGroupSpec& group : shape.state_groups)
        pages.push_back(options.sequences * pages_per_sequence(group, context, options.rows_max));
    std::vector<std::uint32_t> split = options.split;
    if (split.empty()) split = {shape.layer_count};
    std::vector<StageOptions> stages;
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < split.size(); ++i) {
        stages.push_back({.parts = {.layers = {.first = first, .count = split[i]},
                                    .has_input = i == 0,
                                    .has_output = i + 1 == split.size()},
                          .state_type = options.state_type,
                          .rows_max = {.step = options.rows_max, .logits = options.rows_max},
                          .context = context,
                          .pages = pages});
        first += split[i];
    }
    return stages;
}

Error check_split(const models::ModelShape& shape, const ChainOptions& options) {
    if (options.sequences == 0 || options.rows_max == 0)
        return invalid_argument("a chain for {} sequences and {} rows, expected at least 1",
                                options.sequences, options.rows_max);
    if (options.split.empty()) return ok();
    const std::uint64_t sum =
        std::accumulate(options.split.begin(), options.split.end(), std::uint64_t{0});
    if (sum == shape.layer_count) return ok();
    return invalid_argument("the split has {} layers in all, the model has {}", sum,
                            shape.layer_count);
}

}  // namespace

std::vector<std::uint32_t> even_split(std::uint32_t layer_count, std::uint32_t stages) {
    stages = std::min(stages, layer_count);
    std::vector<std::uint32_t> split(stages, layer_count / stages);
    for (std::uint32_t i = 0; i < layer_count % stages; ++i) ++split[i];
    return split;
}

Result<StageChain> StageChain::create(const gguf::GgufIndex& index, const ChainOptions& options,
                                      backends::Backend& backend, WeightSource& source,
                                      const LoadProgress& progress) {
    ARTEL_ASSIGN(const models::Model model, models::open_model(index.metadata()));
    ARTEL_TRY(check_split(model.shape, options));
    StageChain chain;
    std::vector<std::uint32_t> pages;
    for (const StageOptions& stage : stage_options(model.shape, options)) {
        pages = stage.pages;
        ARTEL_ASSIGN(auto made, Stage::create(index, stage, backend, source, progress));
        chain.stages_.push_back(std::move(made));
    }
    for (const std::uint32_t count : pages) {
        std::vector<std::uint32_t> ids(count);
        std::iota(ids.rbegin(), ids.rend(), 0U);  // the lowest is taken first
        chain.free_pages_.push_back(std::move(ids));
    }
    Sequence empty{.length = 0, .tables = std::vector<PageRun>(pages.size())};
    chain.sequences_.assign(options.sequences, empty);
    return chain;
}

Error StageChain::check_rows(std::span<const SequenceTokens> rows) const {
    for (const SequenceTokens& row : rows) {
        if (row.sequence >= sequences_.size())
            return invalid_argument("sequence {} of {}", row.sequence, sequences_.size());
        if (row.tokens.empty()) return invalid_argument("sequence {}: no tokens", row.sequence);
        const std::uint64_t length = sequences_[row.sequence].length + row.tokens.size();
        if (length > context())
            return resource_exhausted("{} tokens, and the context holds {}", length, context());
    }
    return ok();
}

Error StageChain::extend_tables(Sequence& sequence, std::uint32_t new_tokens) {
    const auto& groups = model_shape().state_groups;
    const std::uint32_t last_page = (sequence.length + new_tokens - 1) / graph::kPageTokens;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        PageRun& run = sequence.tables[i];
        const std::uint32_t first_page =
            graph::first_visible(sequence.length, groups[i].window) / graph::kPageTokens;
        while (run.first_page < first_page && !run.pages.empty()) {
            free_pages_[i].push_back(run.pages.front());
            run.pages.erase(run.pages.begin());
            ++run.first_page;
        }
        while (run.first_page + run.pages.size() <= last_page) {
            if (free_pages_[i].empty())
                return resource_exhausted("state group {} has no free page left", i);
            run.pages.push_back(free_pages_[i].back());
            free_pages_[i].pop_back();
        }
    }
    return ok();
}

Result<std::vector<float>> StageChain::run_stages(StageBatch& batch) {
    std::vector<float> logits;
    for (const auto& stage : stages_) {
        ARTEL_ASSIGN(StageResult result, stage->run(batch));
        if (stage->options().parts.has_output) logits = std::move(result.logits);
        batch.activations = to_bytes(result.activations);
    }
    return logits;
}

Result<std::vector<float>> StageChain::step(std::span<const SequenceTokens> rows) {
    ARTEL_TRY(check_rows(rows));
    StageBatch batch;
    for (const SequenceTokens& row : rows) {
        Sequence& sequence = sequences_[row.sequence];
        const auto count = static_cast<std::uint32_t>(row.tokens.size());
        ARTEL_TRY(extend_tables(sequence, count));
        const auto place = static_cast<std::uint32_t>(batch.page_tables.size() /
                                                      model_shape().state_groups.size());
        batch.page_tables.insert(batch.page_tables.end(), sequence.tables.begin(),
                                 sequence.tables.end());
        for (std::uint32_t i = 0; i < count; ++i) {
            if (row.wants_all_logits || i + 1 == count)
                batch.logit_rows.push_back(static_cast<std::uint32_t>(batch.positions.size()));
            batch.sequences.push_back(place);
            batch.positions.push_back(sequence.length + i);
            batch.tokens.push_back(row.tokens[i]);
        }
    }
    ARTEL_ASSIGN(std::vector<float> logits, run_stages(batch));
    for (const SequenceTokens& row : rows)
        sequences_[row.sequence].length += static_cast<std::uint32_t>(row.tokens.size());
    return logits;
}

Error StageChain::feed(const SequenceTokens& tokens, std::uint32_t chunk,
                       const std::function<Error(std::span<const float>)>& take) {
    if (chunk == 0) return invalid_argument("chunks of 0 tokens");
    const std::span<const TokenId> all = tokens.tokens;
    for (std::size_t first = 0; first < all.size(); first += chunk) {
        SequenceTokens part = tokens;
        part.tokens = all.subspan(first, std::min<std::size_t>(chunk, all.size() - first));
        ARTEL_ASSIGN(const std::vector<float> logits, step({&part, 1}));
        const bool is_last = first + part.tokens.size() == all.size();
        if (tokens.wants_all_logits || is_last) ARTEL_TRY(take(logits));
    }
    return ok();
}

void StageChain::drop(std::uint32_t sequence) {
    for (std::size_t i = 0; i < free_pages_.size(); ++i) {
        auto& pages = sequences_[sequence].tables[i].pages;
        free_pages_[i].insert(free_pages_[i].end(), pages.begin(), pages.end());
    }
    sequences_[sequence] = {.length = 0, .tables = std::vector<PageRun>(free_pages_.size())};
}

}  // namespace artel::engine
