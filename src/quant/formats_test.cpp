// SPDX-License-Identifier: Apache-2.0
// Every format's decode, bit for bit: against a few rows kept in tests/data/quants, and against the
// whole oracle (ARTEL_ORACLE, by default ../shared/oracle) where that folder is there.
#include "quant/formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "quant/type_names.hpp"

namespace artel::quant {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::size_t kColumns = 512;  // of all rows of the oracle
constexpr std::uint64_t kFileBytesMax = 16 << 20;

fs::path oracle_folder() {
    const char* folder = std::getenv("ARTEL_ORACLE");
    return folder != nullptr ? fs::path(folder)
                             : fs::path(ARTEL_SOURCE_DIR).parent_path() / "shared/oracle";
}

std::string contents(const fs::path& path) {
    Result<std::string> bytes = read_file(path, kFileBytesMax);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
}

/// Rows in `blocks` that decode to other bits than those in `floats`.
std::size_t count_wrong_rows(FormatId format, const std::string& blocks,
                             const std::string& floats) {
    const std::size_t rows = floats.size() / (kColumns * sizeof(float));
    const auto bytes = static_cast<std::size_t>(row_bytes(format, kColumns).value());
    EXPECT_EQ(blocks.size(), rows * bytes);
    EXPECT_GT(rows, 0U);
    std::size_t wrong = 0;
    std::vector<float> decoded(kColumns);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto part = as_bytes(std::string_view(blocks).substr(row * bytes, bytes));
        EXPECT_TRUE(decode_row(format, part, decoded).ok());
        const std::size_t place = row * kColumns * sizeof(float);
        if (std::memcmp(decoded.data(), floats.data() + place, kColumns * sizeof(float)) != 0)
            ++wrong;
    }
    return wrong;
}

class FormatDecode : public testing::TestWithParam<FormatTraits> {};

TEST_P(FormatDecode, KeptRowsBitForBit) {
    const std::string name(GetParam().name);
    const fs::path folder = fs::path(ARTEL_SOURCE_DIR) / "tests/data/quants";
    EXPECT_EQ(count_wrong_rows(GetParam().id, contents(folder / (name + ".blk.bin")),
                               contents(folder / (name + ".f32.bin"))),
              0U);
}

TEST_P(FormatDecode, WholeOracleBitForBit) {
    const fs::path folder = oracle_folder() / "quants";
    if (!fs::exists(folder)) {
        std::printf("NOT CHECKED: no oracle at %s (set ARTEL_ORACLE)\n", folder.c_str());
        GTEST_SKIP();
    }
    for (const char* kind : {"quantized", "random"}) {
        const std::string stem = std::string(GetParam().name) + "." + kind;
        EXPECT_EQ(count_wrong_rows(GetParam().id, contents(folder / (stem + ".blk.bin")),
                                   contents(folder / (stem + ".f32.bin"))),
                  0U)
            << stem;
    }
}

/// F32 has no decoding to compare, see F32IsCopied.
std::vector<FormatTraits> packed_formats() {
    return {all_formats().begin() + 1, all_formats().end()};
}

INSTANTIATE_TEST_SUITE_P(Format, FormatDecode, testing::ValuesIn(packed_formats()),
                         [](const auto& format) { return std::string(format.param.name); });

TEST(Formats, F32IsCopied) {
    const std::vector<float> floats = {1.5F, -0.0F, 3e-42F, 2e38F};
    std::vector<float> decoded(4);
    ASSERT_TRUE(decode_row(FormatId::F32, std::as_bytes(std::span(floats)), decoded).ok());
    EXPECT_EQ(std::memcmp(floats.data(), decoded.data(), 16), 0);
}

TEST(Formats, WrongLengthIsRefused) {
    std::vector<float> floats(64);
    const std::vector<std::byte> bytes(67);
    EXPECT_THAT(std::string(decode_row(FormatId::Q8_0, bytes, floats).message()),
                HasSubstr("67 bytes of Q8_0 are not 64 elements"));
    EXPECT_FALSE(
        decode_row(FormatId::Q8_0, std::span(bytes).first(34), std::span(floats).first(31)).ok());
}

TEST(Formats, RowBytes) {
    EXPECT_EQ(row_bytes(FormatId::Q4_K, 512), 288U);
    EXPECT_EQ(row_bytes(FormatId::Q4_K, 0), 0U);
    EXPECT_EQ(row_bytes(FormatId::Q4_K, 255), std::nullopt);
    EXPECT_EQ(row_bytes(FormatId::F32, std::uint64_t{1} << 62), std::nullopt);
}

TEST(Formats, FoundByGgufId) {
    for (const FormatTraits& traits : all_formats()) {
        EXPECT_EQ(find_format(traits.gguf_id), traits.id);
        EXPECT_EQ(&format_traits(traits.id), &traits);
    }
    EXPECT_EQ(find_format(4), std::nullopt);
    EXPECT_EQ(find_format(24), std::nullopt);
    EXPECT_EQ(find_format(0xFFFFFFFFU), std::nullopt);
}

// The names of all types and the list of formats say the same of the formats that are in both.
TEST(TypeNames, AgreeWithFormats) {
    for (const FormatTraits& traits : all_formats()) {
        const TypeName* type = find_type_name(traits.gguf_id);
        ASSERT_NE(type, nullptr);
        EXPECT_EQ(type->name, traits.name);
        EXPECT_EQ(type->block_elements, traits.block_elements);
        EXPECT_EQ(type->block_bytes, traits.block_bytes);
    }
}

TEST(TypeNames, AgreeWithOracle) {
    const fs::path path = oracle_folder() / "quants/index.json";
    if (!fs::exists(path)) {
        std::printf("NOT CHECKED: no %s (set ARTEL_ORACLE)\n", path.c_str());
        GTEST_SKIP();
    }
    const auto index = nlohmann::json::parse(contents(path));
    ASSERT_GE(index["types"].size(), 28U);
    for (const auto& type : index["types"]) {
        const TypeName* found = find_type_name(type["ggml_type_id"].get<std::uint32_t>());
        ASSERT_NE(found, nullptr) << type["type"];
        EXPECT_EQ(found->name, type["type"].get<std::string>());
        EXPECT_EQ(found->block_elements, type["block_elems"].get<std::uint32_t>());
        EXPECT_EQ(found->block_bytes, type["block_bytes"].get<std::uint32_t>());
    }
}

TEST(TypeNames, UnknownAndRemovedIdsAreNamed) {
    EXPECT_EQ(describe_type(12), "Q4_K");
    EXPECT_EQ(describe_type(4), "Q4_2 (removed from GGUF)");
    EXPECT_EQ(describe_type(200), "unknown type 200");
    EXPECT_THAT(std::string(block_size_of(36).status().message()), HasSubstr("IQ4_NL_4_4"));
    EXPECT_THAT(std::string(block_size_of(43).status().message()), HasSubstr("type 43"));
    EXPECT_EQ(block_size_of(39)->bytes, 17U);
}

}  // namespace
}  // namespace artel::quant
