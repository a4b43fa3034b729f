// SPDX-License-Identifier: Apache-2.0
// Limits on what a GGUF file may ask for; far above any model that exists, and low enough that
// reading a hostile index stays small.
#pragma once

#include <cstdint>

namespace artel::gguf {

inline constexpr std::uint64_t kIndexBytesMax = 128ULL << 20;  // header, metadata, tensor table
inline constexpr std::uint64_t kEntriesMax = 65'536;           // metadata entries
inline constexpr std::uint64_t kTensorsMax = 131'072;          // in one file
inline constexpr std::uint64_t kKeyBytesMax = 65'535;
inline constexpr std::uint64_t kTensorNameBytesMax = 63;
inline constexpr std::uint32_t kRankMax = 4;
inline constexpr std::uint32_t kAlignmentDefault = 32;
inline constexpr std::uint32_t kAlignmentMin = 8;
inline constexpr std::uint32_t kAlignmentMax = 1U << 20;
inline constexpr std::uint32_t kShardsMax = 4'096;

}  // namespace artel::gguf
