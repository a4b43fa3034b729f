// SPDX-License-Identifier: Apache-2.0
// What the dry run announces is what a stage loads and holds, for every architecture and split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "backends/registry.hpp"
#include "engine/stage.hpp"
#include "models/description.hpp"
#include "support/tiny_model.hpp"

namespace artel::models {
namespace {

using engine::Stage;
using test::TinyModel;

std::set<std::string> announced(const ModelDescription& description, const StageParts& parts) {
    std::set<std::string> names;
    const auto add = [&](const PartDescription& part) {
        for (const TensorUse& tensor : part.tensors) names.insert(tensor.name);
    };
    if (parts.has_input) add(description.input);
    for (std::uint32_t i = parts.layers.first; i < parts.layers.end(); ++i)
        add(description.layers[i]);
    if (parts.has_output) add(description.output);
    return names;
}

std::vector<StageParts> all_parts(std::uint32_t layers) {
    std::vector<StageParts> all;
    for (std::uint32_t first = 0; first <= layers; ++first)
        for (std::uint32_t count = 0; first + count <= layers; ++count)
            for (const bool input : {false, true})
                for (const bool output : {false, true}) {
                    const bool reaches_input = !input || first == 0;
                    const bool reaches_output = !output || first + count == layers;
                    if (reaches_input && reaches_output && (count > 0 || input != output))
                        all.push_back({.layers = {.first = first, .count = count},
                                       .has_input = input,
                                       .has_output = output});
                }
    return all;
}

class DryRun : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(DryRun, AnnouncesTheTensorsAndBytesThatAStageLoads) {
    const auto& [architecture, has_own_head] = GetParam();
    const auto model = TinyModel::create(architecture, {.layers = 3, .has_own_head = has_own_head});
    const auto description = describe(model->index());
    ASSERT_TRUE(description.ok()) << description.status();
    EXPECT_TRUE(description->unused.empty());
    auto backend = backends::create_backend("reference", {});
    ASSERT_TRUE(backend.ok());
    const std::vector<std::uint32_t> pages(description->shape.state_groups.size(), 2);
    for (const StageParts& parts : all_parts(3)) {
        SCOPED_TRACE(fmt::format("layers {}+{} input {} output {}", parts.layers.first,
                                 parts.layers.count, parts.has_input, parts.has_output));
        auto source = model->source();
        const auto stage = Stage::create(
            model->index(), {.parts = parts, .rows_max = {4, 4}, .context = 64, .pages = pages},
            **backend, source);
        ASSERT_TRUE(stage.ok()) << stage.status();
        const std::set<std::string> read(source.tensors_read().begin(),
                                         source.tensors_read().end());
        EXPECT_EQ(read, announced(*description, parts));
        EXPECT_EQ((*stage)->weight_bytes(), stage_weight_bytes(*description, parts));
        std::uint64_t state = 0;
        for (std::uint32_t i = parts.layers.first; i < parts.layers.end(); ++i)
            for (const StateUse& use : description->layers[i].state)
                state += use.bytes_per_token * graph::kPageTokens * 2;
        EXPECT_EQ((*stage)->state_bytes(), state);
    }
}

TEST(DryRunOfExperts, CountsTheChosenOnesForATokenAndAllForMany) {
    const auto model = TinyModel::create("qwen3moe", {.layers = 1});
    const auto description = describe(model->index());
    ASSERT_TRUE(description.ok()) << description.status();
    const PartDescription& layer = description->layers[0];
    std::uint64_t routed = 0;
    for (const TensorUse& tensor : layer.tensors)
        if (tensor.name.find("_exps.") != std::string::npos) routed += tensor.bytes;
    ASSERT_EQ(routed, 3U * 6 * 32 * 32 / 32 * 34);  // Q8_0: 34 bytes for 32 columns
    EXPECT_EQ(layer.row_cost.weight_bytes, layer.weight_bytes - routed / 6 * 4);
}

// The latent vector and the turned key part, once, for all heads.
TEST(DryRunOfLatentAttention, CountsOneVectorAToken) {
    const auto model = TinyModel::create("deepseek2", {.layers = 1});
    const auto description = describe(model->index());
    ASSERT_TRUE(description.ok()) << description.status();
    ASSERT_EQ(description->layers[0].state.size(), 1U);
    EXPECT_EQ(description->layers[0].state[0].bytes_per_token, 2U * (32 + 16));
}

TEST(DryRunOfGlm4Moe, LeavesOutBlocksThatPredict) {
    const auto model = TinyModel::create("glm4moe", {.layers = 3});
    const auto description = describe(model->index());
    ASSERT_TRUE(description.ok()) << description.status();
    EXPECT_EQ(model->index().metadata().get<std::uint32_t>("glm4moe.block_count").value(), 4U);
    EXPECT_EQ(description->shape.layer_count, 3U);
}

std::vector<std::string> architecture_names() {
    std::vector<std::string> names;
    for (const Architecture& architecture : all_architectures())
        names.emplace_back(architecture.name);
    return names;
}

INSTANTIATE_TEST_SUITE_P(All, DryRun,
                         testing::Combine(testing::ValuesIn(architecture_names()),
                                          testing::Bool()));

}  // namespace
}  // namespace artel::models
