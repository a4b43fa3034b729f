// SPDX-License-Identifier: Apache-2.0
// Which builds understand each other. A build speaks version N and N-1. The schema hash is that of
// artel.proto without comments and spaces; protocol_test.cpp fails when the file changes and this
// constant does not, and two builds that claim one version with unlike hashes refuse each other
// (net/opening.hpp).
#pragma once

#include <cstdint>
#include <string_view>

namespace artel::protocol {

inline constexpr std::uint32_t kVersion = 1;     // N
inline constexpr std::uint32_t kVersionMin = 1;  // N-1 (there is none before 1)
inline constexpr std::uint64_t kSchemaHash = 0xE2BD6C3258F386FEULL;

/// FNV-1a over the schema text with comments and white space left out.
std::uint64_t schema_hash(std::string_view proto_text);

}  // namespace artel::protocol
