// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/packed_weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace artel::cpu {
namespace {

class PackedWeights : public testing::TestWithParam<quant::FormatId> {};

/// Any bytes are a block of some format; those whose scales are infinite or NaN are drawn again.
std::vector<std::byte> random_row(quant::FormatId format, std::size_t columns, Random& random) {
    std::vector<std::byte> bytes(*quant::row_bytes(format, columns));
    std::vector<float> floats(columns);
    const std::size_t block = quant::format_traits(format).block_bytes;
    const std::size_t elements = quant::format_traits(format).block_elements;
    for (std::size_t first = 0; first < bytes.size(); first += block) {
        bool is_finite = false;
        while (!is_finite) {
            for (std::size_t i = 0; i < block; ++i)
                bytes[first + i] = static_cast<std::byte>(random.next() & 0xFF);
            is_finite = true;
            floats.resize(elements);
            EXPECT_TRUE(quant::decode_row(format, {bytes.data() + first, block}, floats).ok());
            for (float value : floats) is_finite = is_finite && std::isfinite(value);
        }
    }
    return bytes;
}

std::vector<float> decoded(quant::FormatId format, const std::vector<std::byte>& row,
                           std::size_t columns) {
    std::vector<float> floats(columns);
    EXPECT_TRUE(quant::decode_row(format, row, floats).ok());
    return floats;
}

TEST_P(PackedWeights, DecodeToTheBitsOfTheFormatInWhateverOrderRowsCame) {
    constexpr std::size_t kColumns = 768;
    Random random(7);
    std::vector<std::byte> packed(packed_bytes(GetParam(), 11, kColumns), std::byte{0xFF});
    std::vector<std::vector<std::byte>> rows(11);
    for (auto& row : rows) row = random_row(GetParam(), kColumns, random);
    for (const std::size_t row : {10, 3, 0, 7, 1, 2, 9, 8, 6, 5, 4})
        pack_row(GetParam(), rows[row].data(), row, kColumns, packed.data());
    for (std::size_t row = 0; row < rows.size(); ++row) {
        std::vector<float> found(kColumns);
        decode_packed_row(GetParam(), packed.data(), row, kColumns, found.data());
        const auto expected = decoded(GetParam(), rows[row], kColumns);
        ASSERT_EQ(std::memcmp(expected.data(), found.data(), kColumns * sizeof(float)), 0)
            << "row " << row;
    }
}

/// Percent of the file's bytes that packed weights may take. Formats with grids, and those with
/// less than two bits, become codes of 2 to 4 bits.
std::size_t percent_max(quant::FormatId format) {
    using quant::FormatId;
    constexpr std::pair<FormatId, std::size_t> kGrown[] = {
        {FormatId::Q3_K, 104},  {FormatId::TQ1_0, 123},   {FormatId::IQ3_S, 126},
        {FormatId::IQ2_S, 140}, {FormatId::IQ3_XXS, 141}, {FormatId::IQ2_XS, 155},
        {FormatId::Q1_0, 189},  {FormatId::IQ2_XXS, 161}, {FormatId::IQ1_M, 204},
        {FormatId::IQ1_S, 212},
    };
    for (const auto& [grown, percent] : kGrown)
        if (grown == format) return percent;
    return 103;
}

TEST_P(PackedWeights, CostNoMoreThanIsKnown) {
    const std::size_t file = *quant::row_bytes(GetParam(), 1024) * 16;
    // Q8_K's sums are left out.
    EXPECT_GE(packed_bytes(GetParam(), 16, 1024), file * 89 / 100);
    EXPECT_LE(packed_bytes(GetParam(), 16, 1024), file * percent_max(GetParam()) / 100);
    EXPECT_EQ(packed_bytes(GetParam(), 9, 1024), packed_bytes(GetParam(), 16, 1024));
}

std::vector<quant::FormatId> every_format() {
    std::vector<quant::FormatId> formats;
    for (const auto& traits : quant::all_formats()) formats.push_back(traits.id);
    return formats;
}

INSTANTIATE_TEST_SUITE_P(Formats, PackedWeights, testing::ValuesIn(every_format()),
                         [](const auto& parameter) {
                             return std::string(quant::format_traits(parameter.param).name);
                         });

}  // namespace
}  // namespace artel::cpu
