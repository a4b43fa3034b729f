// SPDX-License-Identifier: Apache-2.0
// Limits of the wire, checked by codec and frames on both sides. Those of queues and times are
// cluster/limits.hpp.
#pragma once

#include <cstdint>

namespace artel::protocol {

inline constexpr std::uint32_t kFrameBytesMax = 1U << 20U;  // header, body and payload of one frame
inline constexpr std::uint32_t kChunkBytesMax = 512U << 10U;  // of weights, and of logits a message
inline constexpr std::uint32_t kMessageBodyBytesMax = 960U << 10U;  // protobuf part; in one frame
inline constexpr std::uint64_t kMessagePayloadBytesMax = 256ULL << 20U;  // over several frames
inline constexpr std::uint32_t kTextBytesMax = 4096;  // names, addresses, reasons
inline constexpr std::uint32_t kRowsMax = 4096;       // of one step
inline constexpr std::uint32_t kRunsMax = 1024;
inline constexpr std::uint32_t kPageChangesMax = 65536;
inline constexpr std::uint32_t kPagesPerChangeMax = 65536;
inline constexpr std::uint32_t kDropsMax = 8192;
inline constexpr std::uint32_t kGroupsMax = 64;
inline constexpr std::uint32_t kLayersMax = 4096;
inline constexpr std::uint32_t kPagesMax = 1U << 26U;  // ids of one group
inline constexpr std::uint32_t kPositionsMax = 1U << 28U;
inline constexpr std::uint32_t kVocabularyMax = 1U << 24U;
inline constexpr std::uint32_t kRowBytesMax = 1U << 20U;
inline constexpr std::uint32_t kBiasesMax = 4096;
inline constexpr std::uint32_t kCountsMax = 32768;  // unlike tokens whose penalties are counted
inline constexpr std::uint32_t kTopLogprobsMax = 20;
inline constexpr std::uint32_t kDevicesMax = 64;
inline constexpr std::uint32_t kNamesMax = 1024;  // architectures, formats
inline constexpr std::uint32_t kThreadsMax = 4096;

}  // namespace artel::protocol
