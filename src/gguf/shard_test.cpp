// SPDX-License-Identifier: Apache-2.0
// Split models: names, order, and every way in which the files may fail to belong together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <ranges>

#include "base/file.hpp"
#include "gguf/gguf_test_files.hpp"
#include "gguf/shard_paths.hpp"
#include "gguf/tensor_reader.hpp"

namespace artel::gguf {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint16_t kCount = 3;
constexpr std::uint16_t kNumbers[] = {0, 1, 2};  // as in split.no

struct SplitKeys {
    std::uint16_t number;
    std::uint16_t count = kCount;
    std::int32_t tensors = 4;
};

void add_split_keys(GgufWriter& writer, SplitKeys keys) {
    writer.add_metadata("split.no", keys.number);
    writer.add_metadata("split.count", keys.count);
    writer.add_metadata("split.tensors.count", keys.tensors);
}

/// Part `number` (from 0) of three: the first has only metadata, the others two tensors each.
GgufWriter part_writer(std::uint16_t number) {
    GgufWriter writer;
    if (number == 0) writer.add_metadata("general.architecture", "llama");
    add_split_keys(writer, {.number = number});
    for (int i = 0; number > 0 && i < 2; ++i)
        writer.add_tensor("t" + std::to_string(2 * (number - 1) + i), {4},
                          std::vector<float>(4, static_cast<float>(number)));
    return writer;
}

std::string part_name(std::uint32_t number, std::string prefix = "m") {
    return shard_file_name({std::move(prefix), number, kCount});
}

class SplitModel : public testing::Test {
  protected:
    void SetUp() override {
        for (const std::uint16_t number : std::views::reverse(kNumbers))
            ASSERT_TRUE(part_writer(number).write(directory_ / part_name(number + 1U)).ok());
    }
    Result<GgufIndex> open(std::string_view name) const {
        return GgufIndex::open(name.empty() ? directory_.path() : directory_ / name,
                               test_block_size);
    }
    std::string message(std::string_view name = part_name(1)) const {
        return std::string(open(name).status().message());
    }
    void replace(std::uint32_t number, const GgufWriter& writer) const {
        ASSERT_TRUE(writer.write(directory_ / part_name(number)).ok());
    }
    TestDirectory directory_;
};

// C12, C13: any part and the directory resolve to the same model; the first part has no tensors.
TEST_F(SplitModel, AnyPartOrTheDirectory) {
    for (const std::string& name : {part_name(1), part_name(2), part_name(3), std::string()}) {
        const Result<GgufIndex> index = open(name);
        ASSERT_TRUE(index.ok()) << index.status();
        EXPECT_EQ(index->shards().size(), 3U);
        EXPECT_EQ(index->metadata().get<std::string_view>("general.architecture").value(), "llama");
        ASSERT_EQ(index->tensors().size(), 4U);
        EXPECT_EQ(index->tensors()[3].name, "t3");
        EXPECT_EQ(index->tensors()[3].shard, 2U);
        const TensorReader reader = TensorReader::open(*index).value();
        EXPECT_EQ(reader.read_all(index->tensors()[2]).value()[3], std::byte{0x40});  // 2.0F
    }
}

TEST_F(SplitModel, MissingPartIsNamed) {
    std::filesystem::remove(directory_ / part_name(2));
    EXPECT_THAT(message(), AllOf(HasSubstr("1 of the 3 parts"), HasSubstr(part_name(2))));
    EXPECT_THAT(message(""), HasSubstr(part_name(2)));
}

TEST_F(SplitModel, RenamedPartIsNamed) {
    std::filesystem::copy_file(directory_ / part_name(3), directory_ / part_name(2),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(message(),
                AllOf(HasSubstr(part_name(2)), HasSubstr("'split.no' is 2, expected 1")));
}

TEST_F(SplitModel, PartOfAnotherModelIsNamed) {
    GgufWriter other;
    add_split_keys(other, {.number = 1, .tensors = 9});
    replace(2, other);
    EXPECT_THAT(message(), AllOf(HasSubstr(part_name(2)),
                                 HasSubstr("'split.tensors.count' is 9, expected 4")));

    GgufWriter architecture;
    architecture.add_metadata("general.architecture", "qwen2");
    add_split_keys(architecture, {.number = 1});
    replace(2, architecture);
    EXPECT_THAT(message(), AllOf(HasSubstr(part_name(2)), HasSubstr("'qwen2'")));

    GgufWriter whole;
    whole.add_metadata("general.architecture", "llama");
    replace(2, whole);
    EXPECT_THAT(message(), AllOf(HasSubstr(part_name(2)), HasSubstr("'split.count' is missing")));
}

TEST_F(SplitModel, TensorsMustAddUp) {
    GgufWriter fewer;
    add_split_keys(fewer, {.number = 1});
    fewer.add_tensor("t0", {4}, std::vector<float>(4));
    replace(2, fewer);
    EXPECT_THAT(message(), HasSubstr("says 4 tensors, the 3 parts hold 3"));

    GgufWriter twice;
    add_split_keys(twice, {.number = 1});
    twice.add_tensor("t0", {4}, std::vector<float>(4));
    twice.add_tensor("t2", {4}, std::vector<float>(4));
    replace(2, twice);
    EXPECT_THAT(message(), AllOf(HasSubstr(part_name(3) + ": tensor 't2' occurs twice"),
                                 HasSubstr(part_name(2))));
}

TEST_F(SplitModel, WrongSplitKeys) {
    GgufWriter none;
    add_split_keys(none, {.number = 0, .count = 0});
    replace(1, none);
    EXPECT_THAT(message(), HasSubstr("'split.count' is 0"));
    GgufWriter negative;
    add_split_keys(negative, {.number = 0, .tensors = -1});
    replace(1, negative);
    EXPECT_THAT(message(), HasSubstr("'split.tensors.count': -1 is out of the range"));
}

TEST_F(SplitModel, PartUnderAnotherName) {
    std::filesystem::rename(directory_ / part_name(1), directory_ / "first.gguf");
    EXPECT_THAT(message("first.gguf"), HasSubstr("one of 3 parts"));
}

// C14: `cat` of the parts, whether or not the first one is padded to its end.
TEST_F(SplitModel, ConcatenatedPartsAreRecognised) {
    std::vector<std::byte> bytes;
    for (const std::uint16_t number : kNumbers) {
        const std::vector<std::byte> part = part_writer(number).to_bytes();
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    ASSERT_TRUE(write_file_atomically(directory_ / "cat.gguf", bytes).ok());
    EXPECT_THAT(message("cat.gguf"), HasSubstr("not merged"));
}

TEST_F(SplitModel, DirectoryWithTwoModels) {
    ASSERT_TRUE(tiny_writer().write(directory_ / "other.gguf").ok());
    EXPECT_THAT(message(""), AllOf(HasSubstr("holds 2 models"), HasSubstr(part_name(1)),
                                   HasSubstr("other.gguf")));
}

TEST(Shards, DirectoryWithOneFileOrNone) {
    const TestDirectory directory;
    EXPECT_THAT(std::string(find_shards(directory.path()).status().message()),
                HasSubstr("holds no .gguf file"));
    ASSERT_TRUE(tiny_writer().write(directory / "one.gguf").ok());
    EXPECT_THAT(find_shards(directory.path()).value(), ElementsAre(directory / "one.gguf"));
}

TEST(Shards, Names) {
    const auto name = parse_shard_name("a-b-00002-of-00010.gguf");
    ASSERT_TRUE(name.has_value());
    EXPECT_EQ(name->prefix, "a-b");
    EXPECT_EQ(name->number, 2U);
    EXPECT_EQ(name->count, 10U);
    EXPECT_EQ(shard_file_name(*name), "a-b-00002-of-00010.gguf");
    for (const char* other :
         {"a.gguf", "a-00000-of-00001.gguf", "a-00003-of-00002.gguf", "a-00001-of-00002",
          "a-0001-of-0002.gguf", "00001-of-00002.gguf", "a-0000x-of-00002.gguf", ""})
        EXPECT_FALSE(parse_shard_name(other).has_value()) << other;
}

TEST(Shards, RawPieces) {
    const TestDirectory directory;
    std::ofstream(directory / "m.gguf.part1of2") << "GGUF";
    EXPECT_THAT(std::string(find_shards(directory / "m.gguf.part1of2").status().message()),
                HasSubstr("put the pieces together with cat"));
}

TEST(Shards, PartsInMemory) {
    std::vector<std::vector<std::byte>> files;
    for (const std::uint16_t number : kNumbers) files.push_back(part_writer(number).to_bytes());
    const std::vector<std::span<const std::byte>> spans(files.begin(), files.end());
    EXPECT_EQ(GgufIndex::parse(spans, test_block_size).value().tensors().size(), 4U);
    const std::vector swapped = {spans[0], spans[2], spans[1]};
    EXPECT_THAT(std::string(GgufIndex::parse(swapped, test_block_size).status().message()),
                HasSubstr("part 2: metadata key 'split.no'"));
    EXPECT_FALSE(GgufIndex::parse({}, test_block_size).ok());
}

// G8: each tensor fits in 63 bits, the sum over two parts does not.
TEST(Shards, SumOfBytesIsChecked) {
    std::vector<std::vector<std::byte>> files;
    for (const std::uint16_t number : {std::uint16_t{0}, std::uint16_t{1}})
        files.push_back(RawFile(1, 3)
                            .entry("split.no", ValueType::U16)
                            .number(number)
                            .entry("split.count", ValueType::U16)
                            .number(std::uint16_t{2})
                            .entry("split.tensors.count", ValueType::I32)
                            .number(std::int32_t{2})
                            .tensor("t" + std::to_string(number), {1ULL << 62}, 24, 0)
                            .to_bytes());
    const std::vector<std::span<const std::byte>> spans(files.begin(), files.end());
    EXPECT_THAT(std::string(GgufIndex::parse(spans, test_block_size).status().message()),
                HasSubstr("part 2: the sum of all tensors' bytes does not fit in 63 bits"));
}

}  // namespace
}  // namespace artel::gguf
