// SPDX-License-Identifier: Apache-2.0
#include "gguf/metadata.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gguf/gguf_test_files.hpp"

namespace artel::gguf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

GgufIndex index_of(const GgufWriter& writer) {
    Result<GgufIndex> index = parse_one(writer.to_bytes());
    EXPECT_TRUE(index.ok()) << index.status();
    return *std::move(index);
}

/// A file with one key of each type, all with the value 1 (or "1").
GgufWriter writer_of_all_types() {
    GgufWriter writer;
    writer.add_metadata("u8", std::uint8_t{1});
    writer.add_metadata("i8", std::int8_t{1});
    writer.add_metadata("u16", std::uint16_t{1});
    writer.add_metadata("i16", std::int16_t{1});
    writer.add_metadata("u32", std::uint32_t{1});
    writer.add_metadata("i32", std::int32_t{1});
    writer.add_metadata("f32", 1.0F);
    writer.add_metadata("bool", true);
    writer.add_metadata("string", "1");
    writer.add_metadata_array<std::uint32_t>("array", {1});
    writer.add_metadata("u64", std::uint64_t{1});
    writer.add_metadata("i64", std::int64_t{1});
    writer.add_metadata("f64", 1.0);
    return writer;
}

/// The types of the file that a getter of T accepts.
template <MetadataType T>
std::vector<std::string> accepted_by(const Metadata& metadata) {
    std::vector<std::string> accepted;
    for (const auto& entry : metadata.entries()) {
        const Result<T> value = metadata.get<T>(entry.key);
        if (value.ok())
            accepted.push_back(entry.key);
        else
            EXPECT_THAT(std::string(value.status().message()),
                        testing::AllOf(HasSubstr("'" + entry.key + "': wanted "),
                                       HasSubstr("found " + entry.key)));
    }
    return accepted;
}

// C03: each getter on each of the 13 types either widens as documented or names key and types.
TEST(Metadata, EachGetterOnEachType) {
    const GgufIndex index = index_of(writer_of_all_types());
    const Metadata& metadata = index.metadata();
    ASSERT_EQ(metadata.entries().size(), kValueTypeCount);
    const auto integers = ElementsAre("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64");
    EXPECT_THAT(accepted_by<std::uint32_t>(metadata), integers);
    EXPECT_THAT(accepted_by<std::int64_t>(metadata), integers);
    EXPECT_THAT(accepted_by<std::uint8_t>(metadata), integers);
    EXPECT_THAT(accepted_by<float>(metadata), ElementsAre("f32", "f64"));
    EXPECT_THAT(accepted_by<double>(metadata), ElementsAre("f32", "f64"));
    EXPECT_THAT(accepted_by<bool>(metadata), ElementsAre("bool"));
    EXPECT_THAT(accepted_by<std::string_view>(metadata), ElementsAre("string"));
}

TEST(Metadata, OutOfRangeIntegersAreRefused) {
    GgufWriter writer;
    writer.add_metadata("minus", std::int32_t{-1});
    writer.add_metadata("large", std::uint64_t{1} << 32);
    writer.add_metadata_array<std::int32_t>("list", {0, 255, 256});
    const GgufIndex index = index_of(writer);
    const Metadata& metadata = index.metadata();
    EXPECT_EQ(metadata.get<std::uint32_t>("minus").status().message(),
              "metadata key 'minus': -1 is out of the range of u32");
    EXPECT_EQ(metadata.get<std::uint32_t>("large").status().message(),
              "metadata key 'large': 4294967296 is out of the range of u32");
    EXPECT_EQ(metadata.get<std::uint64_t>("large").value(), std::uint64_t{1} << 32);
    EXPECT_EQ(metadata.get_array<std::uint8_t>("list").status().message(),
              "metadata key 'list', element 2: 256 is out of the range of u8");
}

TEST(Metadata, FloatsMustBeFinite) {
    GgufWriter writer;
    writer.add_metadata("nan", static_cast<float>(kNan));
    writer.add_metadata("large", 1e300);
    const GgufIndex index = index_of(writer);
    EXPECT_THAT(std::string(index.metadata().get<float>("nan").status().message()),
                HasSubstr("'nan': nan is not a finite f32"));
    EXPECT_THAT(std::string(index.metadata().get<float>("large").status().message()),
                HasSubstr("is not a finite f32"));
    EXPECT_EQ(index.metadata().get<double>("large").value(), 1e300);
}

TEST(Metadata, MissingKeys) {
    const GgufIndex index = index_of(tiny_writer());
    EXPECT_EQ(index.metadata().get<bool>("x.y").status().message(),
              "metadata key 'x.y' is missing");
    EXPECT_EQ(index.metadata().get<bool>("x.y").status().code(), ErrorCode::kNotFound);
    EXPECT_EQ(index.metadata().find<bool>("x.y").value(), std::nullopt);
    EXPECT_EQ(index.metadata().find_array<float>("x.y").value(), std::nullopt);
    // A wrong type is an error for an optional key too.
    EXPECT_FALSE(index.metadata().find<bool>("llama.block_count").ok());
}

TEST(Metadata, Arrays) {
    const GgufIndex index = index_of(tiny_writer());
    const Metadata& metadata = index.metadata();
    EXPECT_THAT(metadata.get_array<std::string_view>("tokenizer.ggml.tokens").value(),
                ElementsAre("a", "", "ccc"));
    EXPECT_THAT(metadata.get_array<float>("tokenizer.ggml.scores").value(),
                ElementsAre(0.5F, 1.0F, -2.0F));
    EXPECT_EQ(metadata.get_array<std::uint32_t>("tokenizer.ggml.tokens").status().message(),
              "metadata key 'tokenizer.ggml.tokens': wanted array of u32, found array of 3 "
              "string");
    EXPECT_FALSE(metadata.get_array<std::uint32_t>("llama.block_count").ok());
    EXPECT_FALSE(metadata.get<float>("tokenizer.ggml.scores").ok());
}

TEST(Metadata, EachIsAnArrayOrOneForAll) {
    GgufWriter writer;
    writer.add_metadata("one", std::uint32_t{8});
    writer.add_metadata_array<std::uint32_t>("many", {1, 2, 3});
    const GgufIndex index = index_of(writer);
    const Metadata& metadata = index.metadata();
    EXPECT_THAT(metadata.get_each<std::uint32_t>("one", 2).value(), ElementsAre(8U, 8U));
    EXPECT_THAT(metadata.get_each<std::uint32_t>("many", 3).value(), ElementsAre(1U, 2U, 3U));
    EXPECT_EQ(metadata.get_each<std::uint32_t>("many", 2).status().message(),
              "metadata key 'many': 3 elements, wanted 2 or one for all");
    EXPECT_EQ(metadata.find_each<std::uint32_t>("none", 2).value(), std::nullopt);
}

TEST(Metadata, EmptyArraysOfAllTypes) {
    GgufWriter writer;
    writer.add_metadata_array<std::string_view>("strings", {});
    writer.add_metadata_array<bool>("bools", {});
    const GgufIndex index = index_of(writer);
    EXPECT_TRUE(index.metadata().get_array<std::string_view>("strings").value().empty());
    EXPECT_TRUE(index.metadata().get_array<bool>("bools").value().empty());
}

TEST(Metadata, StringValuesMayBeAnyBytes) {
    GgufWriter writer;
    const std::string_view bytes("a\0\xff", 3);
    writer.add_metadata("s", bytes);
    const GgufIndex index = index_of(writer);
    EXPECT_EQ(index.metadata().get<std::string_view>("s").value(), bytes);
}

}  // namespace
}  // namespace artel::gguf
