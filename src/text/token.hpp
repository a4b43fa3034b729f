// SPDX-License-Identifier: Apache-2.0
// TokenId: the number of a vocabulary entry. Everything below text/ knows tokens as numbers only.
#pragma once

#include <cstdint>

namespace artel::text {

using TokenId = std::uint32_t;

}  // namespace artel::text
