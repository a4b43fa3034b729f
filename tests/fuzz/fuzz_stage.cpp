// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any step given to Stage::run, for the first, a middle and the last stage of a tiny
// model with two state groups. A step is refused, or its answer has the promised size.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/registry.hpp"
#include "base/check.hpp"
#include "engine/stage.hpp"
#include "support/tiny_model.hpp"

namespace artel::engine {
namespace {

constexpr std::uint32_t kWidth = 32;
constexpr std::uint32_t kVocabulary = 96;

struct Target {
    std::unique_ptr<test::TinyModel> model = test::TinyModel::create("gemma3", {.layers = 3});
    std::unique_ptr<backends::Backend> backend;
    std::vector<std::unique_ptr<Stage>> stages;

    Target() {
        auto made = backends::create_backend("cpu", {.threads = 1, .isa = "scalar"});
        ARTEL_CHECK(made.ok(), "the fuzz target needs the cpu backend");
        backend = *std::move(made);
        for (std::uint32_t i = 0; i < 3; ++i) {
            auto source = model->source();
            auto stage = Stage::create(model->index(),
                                       {.parts = {.layers = {.first = i, .count = 1},
                                                  .has_input = i == 0,
                                                  .has_output = i == 2},
                                        .rows_max = {.step = 16, .logits = 8},
                                        .context = 300,
                                        .pages = {6, 4}},
                                       *backend, source);
            ARTEL_CHECK(stage.ok(), "the fuzz target has no stage");
            stages.push_back(*std::move(stage));
        }
    }
};

/// Takes values off the input; zeros when it is used up.
class Input {
  public:
    explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    std::uint32_t below(std::uint32_t bound) { return byte() % bound; }
    /// Mostly small numbers, now and then a huge one.
    std::uint32_t number() {
        const std::uint32_t first = byte();
        if (first < 240) return first;
        return first << 24 | static_cast<std::uint32_t>(byte()) << 16 | byte();
    }
    std::vector<std::uint32_t> numbers(std::uint32_t count) {
        std::vector<std::uint32_t> values(count);
        for (std::uint32_t& value : values) value = number();
        return values;
    }

  private:
    std::uint8_t byte() {
        if (bytes_.empty()) return 0;
        const std::uint8_t value = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return value;
    }
    std::span<const std::uint8_t> bytes_;
};

StageBatch read_batch(Input& input) {
    StageBatch batch;
    const std::uint32_t rows = input.below(20);
    batch.sequences = input.numbers(input.below(8) == 0 ? input.below(20) : rows);
    if (input.below(2) == 0) {  // a plausible sequence
        const std::uint32_t first = input.number();
        for (std::uint32_t i = 0; i < rows; ++i) batch.positions.push_back(first + i);
        for (std::uint32_t& sequence : batch.sequences) sequence = 0;
    } else {
        batch.positions = input.numbers(rows);
    }
    batch.tokens = input.numbers(input.below(8) == 0 ? input.below(20) : rows);
    for (std::uint32_t i = 0; i < input.below(10); ++i) batch.logit_rows.push_back(i);
    for (std::uint32_t i = 0; i < input.below(6); ++i)
        batch.page_tables.push_back({input.below(4), input.numbers(input.below(8))});
    for (std::uint32_t i = 0; i < input.below(3); ++i)
        batch.page_copies.push_back({input.below(4), input.below(8), input.below(8)});
    std::vector<float> values(std::size_t{rows} * kWidth);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(input.number()) - 100.0F;
    if (input.below(8) == 0 && !values.empty()) values.back() /= 0.0F;
    if (input.below(8) == 0) values.resize(input.number() % 1000);
    batch.activations = to_bytes(values);
    return batch;
}

void run_one(const Target& target, std::span<const std::uint8_t> bytes) {
    Input input(bytes);
    for (int step = 0; step < 4; ++step) {
        const std::size_t place = input.below(3);
        const StageBatch batch = read_batch(input);
        const auto result = target.stages[place]->run(batch);
        if (!result.ok()) continue;
        const bool is_last = place == 2;
        ARTEL_CHECK(result->logits.size() == (is_last ? batch.logit_rows.size() * kVocabulary : 0),
                    "logits of another size");
        ARTEL_CHECK(result->activations.size() == (is_last ? 0 : batch.positions.size() * kWidth),
                    "activations of another size");
    }
}

}  // namespace
}  // namespace artel::engine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const artel::engine::Target target;
    artel::engine::run_one(target, {data, size});
    return 0;
}
