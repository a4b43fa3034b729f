// SPDX-License-Identifier: Apache-2.0
#include "conformance/test_weights.hpp"

#include <cstring>
#include <type_traits>

#include "base/check.hpp"
#include "quant/half.hpp"

namespace artel::conformance {

namespace {

using quant::F16Bits;

/// Between 1/64 and 1/16, either sign where `is_signed`.
F16Bits random_scale(Random& random, bool is_signed) {
    const double magnitude = (1 + 3 * random.unit()) / 64;
    return quant::f32_to_f16(
        static_cast<float>(is_signed && random.chance(0.5) ? -magnitude : magnitude));
}

/// A scale of a usual size, wherever the format keeps it.
template <quant::Format F>
void set_scale(typename F::Block& block, Random& random) {
    const F16Bits bits = random_scale(random, true);
    if constexpr (std::is_same_v<F, quant::MXFP4>) {
        block.exponent = static_cast<std::uint8_t>(120 + random.next() % 4);
    } else if constexpr (std::is_same_v<F, quant::NVFP4>) {
        for (std::uint8_t& scale : block.part_scales)
            scale = static_cast<std::uint8_t>(0x20 + random.next() % 32);
    } else if constexpr (std::is_same_v<F, quant::IQ1_M>) {
        for (int i = 0; i < 4; ++i) {  // four bits in the upper half of each second byte
            std::uint8_t& byte = block.packed_scales[i][1];
            byte = static_cast<std::uint8_t>((byte & 0x0F) | (bits >> (4 * i) & 0x0F) << 4);
        }
    } else if constexpr (std::is_same_v<F, quant::Q8_K>) {
        block.scale = quant::f16_to_f32(bits);
    } else {
        block.scale = bits;
    }
}

template <quant::Format F>
typename F::Block random_block(Random& random) {
    typename F::Block block;
    if constexpr (F::kBlockElements == 1) {
        const float value = random_float(random);
        if constexpr (sizeof(block) == sizeof(float))
            block.value = value;
        else if constexpr (F::kGgufId == quant::F16::kGgufId)
            block.value = quant::f32_to_f16(value);
        else
            block.value = quant::f32_to_bf16(value);
    } else {
        std::vector<std::uint8_t> bytes(sizeof(block));
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
        std::memcpy(&block, bytes.data(), sizeof(block));
        set_scale<F>(block, random);
        if constexpr (requires { block.minimum; }) block.minimum = random_scale(random, true);
    }
    return block;
}

}  // namespace

float random_float(Random& random) {
    return static_cast<float>(2 * random.unit() - 1);
}

std::vector<float> random_floats(Random& random, std::size_t count) {
    std::vector<float> floats(count);
    for (float& x : floats) x = random_float(random);
    return floats;
}

void TestWeights::add(const std::string& name, quant::FormatId format, std::uint64_t rows,
                      std::uint64_t columns) {
    const auto row_bytes = quant::row_bytes(format, columns);
    ARTEL_CHECK(row_bytes.has_value(), "a test asks for whole blocks");
    Entry entry{format, rows, columns, std::vector<std::byte>(rows * *row_bytes)};
    quant::with_format(format, [&]<quant::Format F>() {
        for (std::size_t at = 0; at < entry.bytes.size(); at += sizeof(typename F::Block)) {
            const auto block = random_block<F>(random_);
            std::memcpy(entry.bytes.data() + at, &block, sizeof(block));
        }
    });
    entries_.insert_or_assign(name, std::move(entry));
}

void TestWeights::set_vector(const std::string& name, const std::vector<float>& values) {
    add_vector(name, values.size());
    const auto bytes = std::as_bytes(std::span(values));
    entries_.at(name).bytes.assign(bytes.begin(), bytes.end());
}

std::optional<graph::WeightEntry> TestWeights::find(std::string_view name) const {
    const auto entry = entries_.find(name);
    if (entry == entries_.end()) return std::nullopt;
    return graph::WeightEntry{.gguf_type = quant::format_traits(entry->second.format).gguf_id,
                              .rows = entry->second.rows,
                              .columns = entry->second.columns};
}

const std::vector<std::byte>& TestWeights::bytes(const std::string& name) const {
    return entries_.at(name).bytes;
}

std::vector<float> TestWeights::row(const std::string& name, std::uint64_t row) const {
    const Entry& entry = entries_.at(name);
    const std::size_t row_bytes = entry.bytes.size() / entry.rows;
    std::vector<float> decoded(entry.columns);
    const Error error = quant::decode_row(
        entry.format, std::span(entry.bytes).subspan(row * row_bytes, row_bytes), decoded);
    ARTEL_CHECK(error.ok(), "whole rows");
    return decoded;
}

}  // namespace artel::conformance
