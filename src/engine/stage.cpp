// SPDX-License-Identifier: Apache-2.0
#include "engine/stage.hpp"

#include <cstring>

namespace artel::engine {

namespace {

Error check_options(const models::ModelShape& shape, const StageOptions& options) {
    if (options.rows_max.step == 0 || options.context == 0)
        return invalid_argument("a stage for {} rows and {} positions: both must be above 0",
                                options.rows_max.step, options.context);
    if (options.pages.size() != shape.state_groups.size())
        return invalid_argument("page counts of {} state groups, the model has {}",
                                options.pages.size(), shape.state_groups.size());
    return ok();
}

}  // namespace

Stage::Stage(models::ModelShape shape, const StageOptions& options, backends::Backend& backend)
    : shape_(std::move(shape)),
      options_(options),
      limits_{.rows = options.rows_max, .context = options.context, .pages = options.pages},
      backend_(backend) {}

Result<std::unique_ptr<Stage>> Stage::create(const gguf::GgufIndex& index,
                                             const StageOptions& options,
                                             backends::Backend& backend, WeightSource& source,
                                             const LoadProgress& progress) {
    ARTEL_ASSIGN(const models::Model model, models::open_model(index.metadata()));
    ARTEL_TRY(check_options(model.shape, options));
    const models::IndexedWeights indexed(index);
    ARTEL_ASSIGN(graph::Graph graph,
                 models::record_stage(model, indexed, options.parts, options.state_type));
    ARTEL_TRY(backend.supports(graph));

    auto stage = std::unique_ptr<Stage>(new Stage(model.shape, options, backend));
    ARTEL_ASSIGN(stage->state_, StateCache::create(graph, options.pages, backend));
    ARTEL_ASSIGN(stage->weights_, load_weights(graph, backend, source, progress));
    const auto state = stage->state_.buffers();
    ARTEL_ASSIGN(stage->prepared_,
                 backend.prepare(std::move(graph), options.rows_max,
                                 {.weights = stage->weights_.bound, .state = state}));
    return stage;
}

std::uint64_t Stage::weight_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& buffer : weights_.buffers) sum += buffer->bytes();
    return sum;
}

Error Stage::check_sizes(const StageBatch& batch) const {
    const std::size_t rows = batch.positions.size();
    const std::size_t groups = shape_.state_groups.size();
    if (rows == 0 || rows > options_.rows_max.step)
        return invalid_argument("a step of {} rows, expected 1 to {}", rows,
                                options_.rows_max.step);
    if (batch.sequences.size() != rows)
        return invalid_argument("sequences of {} rows, expected {}", batch.sequences.size(), rows);
    if (batch.page_tables.empty() || batch.page_tables.size() % groups != 0)
        return invalid_argument("{} page tables, expected {} for each sequence",
                                batch.page_tables.size(), groups);
    return ok();
}

Error Stage::load_activations(const StageBatch& batch) {
    const std::uint64_t wanted =
        std::uint64_t{batch.positions.size()} * shape_.width * sizeof(float);
    if (batch.activations.size() != wanted)
        return invalid_argument("{} bytes of activations for {} rows of {} columns, expected {}",
                                batch.activations.size(), batch.positions.size(), shape_.width,
                                wanted);
    activations_.resize(wanted / sizeof(float));
    std::memcpy(activations_.data(), batch.activations.data(), wanted);
    return ok();
}

Result<StageResult> Stage::run(const StageBatch& batch) {
    const models::StageParts& parts = options_.parts;
    ARTEL_TRY(check_sizes(batch));
    if (!parts.has_input) ARTEL_TRY(load_activations(batch));

    std::vector<graph::PageTable> tables;  // (sequences of the step, groups)
    tables.reserve(batch.page_tables.size());
    for (const PageRun& run : batch.page_tables) tables.push_back({run.first_page, run.pages});

    const std::size_t rows = batch.positions.size();
    const std::size_t logit_rows = parts.has_output ? batch.logit_rows.size() : 0;
    StageResult result;
    std::vector<float>& out = parts.has_output ? result.logits : result.activations;
    if (logit_rows > options_.rows_max.logits)
        return invalid_argument("{} rows want logits, at most {} may", logit_rows,
                                options_.rows_max.logits);
    out.resize(parts.has_output ? logit_rows * shape_.vocabulary_size : rows * shape_.width);

    const std::span<const float> input = activations_;
    const std::span<float> output = out;
    graph::RunInputs inputs{.positions = batch.positions,
                            .sequences = batch.sequences,
                            .tokens = {},
                            .logit_rows = {},
                            .page_tables = tables,
                            .inputs = {},
                            .outputs = {&output, 1}};
    if (parts.has_input)
        inputs.tokens = batch.tokens;
    else
        inputs.inputs = {&input, 1};
    if (parts.has_output) inputs.logit_rows = batch.logit_rows;
    ARTEL_TRY(graph::check_run_inputs(prepared_->graph(), limits_, inputs));

    for (const PageCopy& copy : batch.page_copies) ARTEL_TRY(state_.check_copy(copy));
    for (const PageCopy& copy : batch.page_copies) ARTEL_TRY(state_.copy_page(copy, backend_));
    ARTEL_TRY(backend_.run(*prepared_, inputs));
    ARTEL_TRY(backend_.wait());
    return result;
}

SharedBytes to_bytes(const std::vector<float>& activations) {
    return SharedBytes::copy_of(std::as_bytes(std::span(activations)));
}

}  // namespace artel::engine
