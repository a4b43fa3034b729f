// SPDX-License-Identifier: Apache-2.0
#include "quant/formats.hpp"

#include "base/byte_count.hpp"

namespace artel::quant {

namespace {

template <Format F>
constexpr FormatTraits traits_of(FormatId id) {
    return {id, F::kName, F::kGgufId, F::kBlockElements, sizeof(typename F::Block)};
}

constexpr FormatTraits kFormats[] = {
#define ARTEL_FORMAT_TRAITS(F) traits_of<F>(FormatId::F),
    ARTEL_FORMATS(ARTEL_FORMAT_TRAITS)
#undef ARTEL_FORMAT_TRAITS
};

template <Format F>
void decode_blocks(const std::byte* bytes, std::size_t blocks, float* floats) {
    for (std::size_t i = 0; i < blocks; ++i)
        F::decode(load_block<F>(bytes, i), floats + i * F::kBlockElements);
}

}  // namespace

const FormatTraits& format_traits(FormatId format) {
    return kFormats[static_cast<std::size_t>(format)];
}

std::span<const FormatTraits> all_formats() {
    return kFormats;
}

std::optional<FormatId> find_format(std::uint32_t gguf_id) {
    for (const FormatTraits& traits : kFormats)
        if (traits.gguf_id == gguf_id) return traits.id;
    return std::nullopt;
}

std::optional<std::uint64_t> row_bytes(FormatId format, std::uint64_t columns) {
    const FormatTraits& traits = format_traits(format);
    if (columns % traits.block_elements != 0) return std::nullopt;
    return checked_multiply(columns / traits.block_elements, traits.block_bytes);
}

Error decode_row(FormatId format, std::span<const std::byte> bytes, std::span<float> floats) {
    const auto expected = row_bytes(format, floats.size());
    if (!expected || *expected != bytes.size())
        return invalid_argument("{} bytes of {} are not {} elements", bytes.size(),
                                format_traits(format).name, floats.size());
    with_format(format, [&]<Format F>() {
        decode_blocks<F>(bytes.data(), floats.size() / F::kBlockElements, floats.data());
    });
    return ok();
}

}  // namespace artel::quant
