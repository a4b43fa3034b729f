// SPDX-License-Identifier: Apache-2.0
// BlockSize: how a packed element type is sized. gguf/ asks for it through a function of this type
// so that it needs to know no formats; quant/ answers (quant::block_size_of).
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace artel {

struct BlockSize {
    std::uint32_t elements;  // in one block, > 0
    std::uint32_t bytes;     // of one block, > 0
};

/// The block of a GGUF tensor type id, or an Error that says why there is none.
using BlockSizeLookup = Result<BlockSize> (*)(std::uint32_t type_id);

}  // namespace artel
