// SPDX-License-Identifier: Apache-2.0
// Settings that contradict each other or the tensors are refused with the key or tensor named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gguf/gguf_writer.hpp"
#include "models/description.hpp"

namespace artel::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Every tensor here is F32.
Result<BlockSize> float_block(std::uint32_t) {
    return BlockSize{.elements = 1, .bytes = 4};
}

struct Dims {
    std::uint64_t columns = 0;
    std::uint64_t rows = 1;
};

/// A model file of F32 zeros that a test may spoil before it is read.
struct File {
    std::string architecture = "llama";
    std::map<std::string, std::uint32_t> counts = {
        {"block_count", 2},          {"context_length", 64},      {"embedding_length", 32},
        {"feed_forward_length", 64}, {"attention.head_count", 4}, {"attention.head_count_kv", 2},
    };
    std::map<std::string, float> numbers = {{"attention.layer_norm_rms_epsilon", 1e-5F}};
    std::map<std::string, std::string> texts;
    std::uint32_t vocabulary = 10;
    std::map<std::string, Dims> tensors;

    File() {
        tensors = {{"token_embd.weight", {32, 10}}, {"output_norm.weight", {32}}};
        for (const std::string layer : {"blk.0.", "blk.1."}) {
            tensors[layer + "attn_norm.weight"] = {32};
            tensors[layer + "attn_q.weight"] = {32, 32};
            tensors[layer + "attn_k.weight"] = {32, 16};
            tensors[layer + "attn_v.weight"] = {32, 16};
            tensors[layer + "attn_output.weight"] = {32, 32};
            tensors[layer + "ffn_norm.weight"] = {32};
            tensors[layer + "ffn_gate.weight"] = {32, 64};
            tensors[layer + "ffn_up.weight"] = {32, 64};
            tensors[layer + "ffn_down.weight"] = {64, 32};
        }
    }

    /// The same with what gemma3 needs beyond llama.
    static File gemma3() {
        File file;
        file.architecture = "gemma3";
        for (const std::string layer : {"blk.0.", "blk.1."}) {
            file.tensors[layer + "attn_q_norm.weight"] = {8};
            file.tensors[layer + "attn_k_norm.weight"] = {8};
            file.tensors[layer + "post_attention_norm.weight"] = {32};
            file.tensors[layer + "post_ffw_norm.weight"] = {32};
        }
        return file;
    }

    Result<ModelDescription> describe() const {
        gguf::GgufWriter writer;
        writer.add_metadata("general.architecture", std::string_view(architecture));
        for (const auto& [key, value] : counts) writer.add_metadata(full(key), value);
        for (const auto& [key, value] : numbers) writer.add_metadata(full(key), value);
        for (const auto& [key, value] : texts)
            writer.add_metadata(full(key), std::string_view(value));
        std::vector<std::string_view> spellings(vocabulary, "t");
        writer.add_metadata_array("tokenizer.ggml.tokens", spellings);
        for (const auto& [name, dims] : tensors) {
            const std::vector<float> zeros(dims.columns * dims.rows);
            if (dims.rows == 1)
                writer.add_tensor(name, {dims.columns}, zeros);
            else
                writer.add_tensor(name, {dims.columns, dims.rows}, zeros);
        }
        const std::vector<std::byte> bytes = writer.to_bytes();
        const std::span<const std::byte> view = bytes;
        ARTEL_ASSIGN(const auto index, gguf::GgufIndex::parse({&view, 1}, float_block));
        return models::describe(index);
    }
    std::string full(const std::string& key) const { return architecture + "." + key; }
};

std::string refusal(const std::function<void(File&)>& spoil) {
    File file;
    spoil(file);
    const auto description = file.describe();
    return description.ok() ? "accepted" : std::string(description.status().message());
}

TEST(Describe, TellsTensorsStateAndCostOfEachLayer) {
    const auto description = File().describe();
    ASSERT_TRUE(description.ok()) << description.status();
    EXPECT_EQ(description->architecture, "llama");
    EXPECT_EQ(description->shape.width, 32U);
    EXPECT_EQ(description->shape.vocabulary_size, 10U);
    ASSERT_EQ(description->layers.size(), 2U);
    const PartDescription& layer = description->layers[1];
    EXPECT_EQ(layer.tensors.size(), 9U);
    // 2 norms, q and output (32, 32), k and v (16, 32), three of (64, 32): all float32.
    EXPECT_EQ(layer.weight_bytes, 4U * (2 * 32 + 2 * 1024 + 2 * 512 + 3 * 2048));
    ASSERT_EQ(layer.state.size(), 1U);
    EXPECT_EQ(layer.state[0].bytes_per_token, 2U * 2 * 16);  // f16 keys and values of 2 heads of 8
    EXPECT_GE(layer.row_cost.flops, 2U * (2 * 1024 + 2 * 512 + 3 * 2048));
    EXPECT_GT(layer.position_cost.state_bytes, 0U);
    EXPECT_GE(layer.scratch_bytes_per_row, 4U * 64 * 2);  // gate and up live at once
}

TEST(Describe, CountsATiedHeadOnceInAStageWithBothEnds) {
    const auto description = File().describe();
    ASSERT_TRUE(description.ok()) << description.status();
    const std::uint64_t layers = 2 * description->layers[0].weight_bytes;
    const StageParts whole{.layers = {0, 2}, .has_input = true, .has_output = true};
    EXPECT_EQ(stage_weight_bytes(*description, whole), layers + 4U * (320 + 32));
    const StageParts last{.layers = {1, 1}, .has_input = false, .has_output = true};
    EXPECT_EQ(stage_weight_bytes(*description, last), layers / 2 + 4U * (320 + 32));
}

TEST(Describe, NamesTensorsThatNoPartUses) {
    File file;
    file.tensors["vision.patch.weight"] = {32, 4};
    const auto description = file.describe();
    ASSERT_TRUE(description.ok()) << description.status();
    ASSERT_EQ(description->unused.size(), 1U);
    EXPECT_EQ(description->unused[0].name, "vision.patch.weight");
    EXPECT_EQ(description->unused_bytes, 4U * 128);
}

TEST(Llama, RefusesSettingsByTheirKey) {
    const auto count = [](const char* key, std::uint32_t value) {
        return refusal([&](File& file) { file.counts[key] = value; });
    };
    EXPECT_THAT(count("block_count", 0), HasSubstr("llama.block_count is 0"));
    EXPECT_THAT(count("context_length", 0), HasSubstr("llama.context_length is 0"));
    EXPECT_THAT(count("attention.head_count", 0), HasSubstr("llama.attention.head_count is 0"));
    EXPECT_THAT(count("attention.head_count", 5),
                AllOf(HasSubstr("llama.attention.head_count is 5"), HasSubstr("head_count_kv")));
    EXPECT_THAT(count("attention.head_count_kv", 8), HasSubstr("head_count_kv"));
    EXPECT_THAT(count("attention.head_count_kv", 3), HasSubstr("head_count_kv"));
    EXPECT_THAT(count("embedding_length", 33), HasSubstr("llama.embedding_length is 33"));
    EXPECT_THAT(count("rope.dimension_count", 7), HasSubstr("llama.rope.dimension_count is 7"));
    EXPECT_THAT(count("rope.dimension_count", 10), HasSubstr("llama.rope.dimension_count is 10"));
    EXPECT_THAT(count("expert_count", 8), HasSubstr("llama.expert_count is 8"));
    EXPECT_THAT(count("block_count", 0xFFFFFFFF), HasSubstr("llama.block_count is 4294967295"));
}

TEST(Llama, RefusesNumbersThatAreNone) {
    for (const float value : {NAN, INFINITY, 0.0F, -1e-5F})
        EXPECT_THAT(
            refusal([&](File& file) { file.numbers["attention.layer_norm_rms_epsilon"] = value; }),
            HasSubstr("layer_norm_rms_epsilon"))
            << value;
    EXPECT_THAT(refusal([](File& file) { file.numbers.clear(); }),
                HasSubstr("llama.attention.layer_norm_rms_epsilon is missing"));
    EXPECT_THAT(refusal([](File& file) { file.texts["rope.scaling.type"] = "dynamic"; }),
                HasSubstr("rope.scaling.type is \"dynamic\""));
    EXPECT_THAT(refusal([](File& file) { file.texts["rope.scaling.type"] = "yarn"; }),
                HasSubstr("llama.rope.scaling.factor is missing"));
}

TEST(Llama, RefusesTensorsByTheirName) {
    EXPECT_THAT(refusal([](File& file) { file.tensors.erase("blk.1.ffn_up.weight"); }),
                HasSubstr("blk.1.ffn_up.weight"));
    EXPECT_THAT(refusal([](File& file) { file.tensors["blk.0.attn_k.weight"].rows = 32; }),
                HasSubstr("blk.0.attn_k.weight"));
    EXPECT_THAT(refusal([](File& file) { file.counts["block_count"] = 3; }), HasSubstr("blk.2."));
    EXPECT_THAT(refusal([](File& file) { file.vocabulary = 12; }), HasSubstr("token_embd.weight"));
    EXPECT_THAT(refusal([](File& file) { file.tensors["rope_freqs.weight"] = {5}; }),
                HasSubstr("rope_freqs.weight"));
}

TEST(Registry, NamesAnUnknownArchitectureAndThoseItKnows) {
    EXPECT_THAT(refusal([](File& file) { file.architecture = "zzz-net"; }),
                AllOf(HasSubstr("zzz-net"), HasSubstr("llama"), HasSubstr("gemma3")));
}

TEST(Gemma3, KeepsWindowedLayersInAGroupOfTheirOwn) {
    File file = File::gemma3();
    file.counts["attention.sliding_window"] = 32;
    file.counts["attention.sliding_window_pattern"] = 2;
    const auto description = file.describe();
    ASSERT_TRUE(description.ok()) << description.status();
    const auto& groups = description->shape.state_groups;
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[1].kind, graph::StateKind::Windowed);
    EXPECT_EQ(groups[1].window, 32U);
    EXPECT_EQ(description->layers[0].state[0].group, 1U);
    EXPECT_EQ(description->layers[1].state[0].group, 0U);
}

TEST(Gemma3, WithoutAWindowHasOneGroup) {
    const auto description = File::gemma3().describe();
    ASSERT_TRUE(description.ok()) << description.status();
    EXPECT_EQ(description->shape.state_groups.size(), 1U);
    EXPECT_EQ(description->layers[0].state[0].group, 0U);
}

TEST(RecordStage, RefusesPartsThatTheModelDoesNotHave) {
    const auto refuses = [](const StageParts& parts) {
        const auto description = File().describe();
        EXPECT_TRUE(description.ok());
        struct NoWeights final : graph::WeightIndex {
            std::optional<graph::WeightEntry> find(std::string_view) const override {
                return std::nullopt;
            }
        } none;
        const Model model{.architecture = "test",
                          .shape = description->shape,
                          .input = nullptr,
                          .layer = nullptr,
                          .output = nullptr};
        return record_stage(model, none, parts, graph::StateType::F16).status();
    };
    for (const StageParts& parts :
         {StageParts{{3, 1}, false, false}, StageParts{{1, 2}, false, false},
          StageParts{{1, 0xFFFFFFFF}, false, false}, StageParts{{0, 0}, false, false},
          StageParts{{1, 1}, true, false}, StageParts{{0, 1}, false, true},
          StageParts{{0, 0}, true, true}})
        EXPECT_EQ(refuses(parts).code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace artel::models
