// SPDX-License-Identifier: Apache-2.0
// THE list of formats that this build computes with: a new format is one header and one line here.
// FormatId names one at run time; with_format() turns it back into the type, once, outside loops.
// Pure functions and constant tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "quant/bf16.hpp"
#include "quant/f16.hpp"
#include "quant/f32.hpp"
#include "quant/iq1_m.hpp"
#include "quant/iq1_s.hpp"
#include "quant/iq2_s.hpp"
#include "quant/iq2_xs.hpp"
#include "quant/iq2_xxs.hpp"
#include "quant/iq3_s.hpp"
#include "quant/iq3_xxs.hpp"
#include "quant/iq4_nl.hpp"
#include "quant/iq4_xs.hpp"
#include "quant/mxfp4.hpp"
#include "quant/nvfp4.hpp"
#include "quant/q1_0.hpp"
#include "quant/q2_0.hpp"
#include "quant/q2_k.hpp"
#include "quant/q3_k.hpp"
#include "quant/q4_0.hpp"
#include "quant/q4_1.hpp"
#include "quant/q4_k.hpp"
#include "quant/q5_0.hpp"
#include "quant/q5_1.hpp"
#include "quant/q5_k.hpp"
#include "quant/q6_k.hpp"
#include "quant/q8_0.hpp"
#include "quant/q8_k.hpp"
#include "quant/tq1_0.hpp"
#include "quant/tq2_0.hpp"

// clang-format off
#define ARTEL_FORMATS(X) \
    X(F32)     \
    X(F16)     \
    X(BF16)    \
    X(Q4_0)    \
    X(Q4_1)    \
    X(Q5_0)    \
    X(Q5_1)    \
    X(Q8_0)    \
    X(Q4_K)    \
    X(Q5_K)    \
    X(Q6_K)    \
    X(Q2_K)    \
    X(Q3_K)    \
    X(Q8_K)    \
    X(IQ1_S)   \
    X(IQ1_M)   \
    X(IQ2_XXS) \
    X(IQ2_XS)  \
    X(IQ2_S)   \
    X(IQ3_XXS) \
    X(IQ3_S)   \
    X(IQ4_NL)  \
    X(IQ4_XS)  \
    X(TQ1_0)   \
    X(TQ2_0)   \
    X(Q1_0)    \
    X(Q2_0)    \
    X(MXFP4)   \
    X(NVFP4)
// clang-format on

namespace artel::quant {

enum class FormatId : std::uint8_t {
#define ARTEL_FORMAT_ENUMERATOR(F) F,
    ARTEL_FORMATS(ARTEL_FORMAT_ENUMERATOR)
#undef ARTEL_FORMAT_ENUMERATOR
};

#define ARTEL_FORMAT_CHECK(F) static_assert(Format<F>);
ARTEL_FORMATS(ARTEL_FORMAT_CHECK)
#undef ARTEL_FORMAT_CHECK

/// A format as values, for code that only counts bytes or prints.
struct FormatTraits {
    FormatId id;
    std::string_view name;
    std::uint32_t gguf_id;
    std::uint32_t block_elements;
    std::uint32_t block_bytes;
};

const FormatTraits& format_traits(FormatId format);
std::span<const FormatTraits> all_formats();
std::optional<FormatId> find_format(std::uint32_t gguf_id);

/// visitor.template operator()<F>() for the type F of `format`; all must return one type.
template <class Visitor>
decltype(auto) with_format(FormatId format, Visitor&& visitor) {
    switch (format) {
#define ARTEL_FORMAT_CASE(F) \
    case FormatId::F:        \
        return visitor.template operator()<F>();
        ARTEL_FORMATS(ARTEL_FORMAT_CASE)
#undef ARTEL_FORMAT_CASE
    }
    __builtin_unreachable();
}

/// Bytes of a row of `columns` elements; nothing if that is not whole blocks or overflows.
std::optional<std::uint64_t> row_bytes(FormatId format, std::uint64_t columns);

/// Decodes whole blocks to floats. Errors: InvalidArgument where the bytes are not those of
/// floats.size() elements.
Error decode_row(FormatId format, std::span<const std::byte> bytes, std::span<float> floats);

}  // namespace artel::quant
