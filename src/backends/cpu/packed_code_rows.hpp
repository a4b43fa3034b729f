// SPDX-License-Identifier: Apache-2.0
// Packs single rows as codes (packed_codes.hpp) and reads them back, for packed_weights.cpp, whose
// contracts these keep: `group` is the row's group of eight, `lane` its place there. Instantiated
// for ARTEL_CODE_FORMATS.
#pragma once

#include <cstddef>

namespace artel::cpu {

template <class F>
void pack_code_row(const std::byte* source, std::size_t lane, std::size_t columns,
                   std::byte* group);

template <class F>
void decode_code_row(const std::byte* group, std::size_t lane, std::size_t columns, float* floats);

}  // namespace artel::cpu
