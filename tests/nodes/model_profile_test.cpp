// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_profile.hpp"

#include <gtest/gtest.h>

#include "backends/registry.hpp"
#include "models/description.hpp"
#include "support/tiny_model.hpp"

namespace artel::runtime {
namespace {

/// What the planner counts is what a worker holds: formats grow, or not, when they are re-laid.
TEST(ModelProfile, CountsWeightsAsTheyAreHeld) {
    const auto tiny = test::TinyModel::create("llama");
    const auto description = models::describe(tiny->index());
    ASSERT_TRUE(description.ok()) << description.status();
    const auto profile = model_profile("tiny", tiny->index(), {}, *description, 16);
    std::uint64_t counted =
        profile.input.weight_bytes + profile.output.weight_bytes - profile.shared_end_bytes;
    for (const auto& layer : profile.layers) counted += layer.weight_bytes;

    const auto backend = backends::create_backend("cpu", {});
    ASSERT_TRUE(backend.ok()) << backend.status();
    const auto model = models::open_model(tiny->index().metadata());
    ASSERT_TRUE(model.ok());
    const auto graph = models::record_stage(*model, models::IndexedWeights(tiny->index()),
                                            models::whole_model(*model), graph::StateType::F16);
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto source = tiny->source();
    const auto weights = engine::load_weights(*graph, **backend, source);
    ASSERT_TRUE(weights.ok()) << weights.status();
    std::uint64_t held = 0;
    for (const auto& bound : weights->bound) held += bound.layout.bytes;
    EXPECT_EQ(counted, held);
    EXPECT_GT(held, 0U);
}

}  // namespace
}  // namespace artel::runtime
