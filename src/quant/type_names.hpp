// SPDX-License-Identifier: Apache-2.0
// Every tensor type id that GGUF has ever given out, whether or not this build computes with it, so
// that messages can name a type and `inspect` can count its bytes. Ids and sizes: the enumeration
// ggml_type and the block sizes of gguf-py's constants.
// tidy: helper
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/block_size.hpp"

namespace artel::quant {

struct TypeName {
    std::uint32_t gguf_id;
    std::string_view name;
    std::uint32_t block_elements;  // 0: the id was removed from GGUF
    std::uint32_t block_bytes;     // 0: the id was removed from GGUF
    bool is_removed() const { return block_bytes == 0; }
};

std::span<const TypeName> all_type_names();
/// The entry of an id, or nullptr where GGUF has none.
const TypeName* find_type_name(std::uint32_t gguf_id);
/// "Q4_K", "Q4_2 (removed from GGUF)" or "unknown type 200".
std::string describe_type(std::uint32_t gguf_id);
/// The block of any type that GGUF has, computable by this build or not; a BlockSizeLookup.
/// Errors: InvalidArgument for an id that GGUF never had or has removed.
Result<BlockSize> block_size_of(std::uint32_t gguf_id);

}  // namespace artel::quant
