// SPDX-License-Identifier: Apache-2.0
// What both ends of a fresh TLS connection say before the first frame. Fixed layouts, so that any
// two versions understand at least the refusal. All numbers little-endian.
//
//   dialler -> acceptor, 32 bytes                       acceptor -> dialler, 8 bytes + text
//   | 0  "ARTELNET" | 8  version min u16 |              | 0 accepted u8 (1/0) | 1 zero u8       |
//   | 10 version max u16 | 12 purpose u8 |              | 2 version u16 | 4 text bytes u16 | 6 0 |
//   | 13 lane u8 | 14 zero u16 |                       | 8 text: why not, at most 1024 bytes   |
//   | 16 process u32 | 20 link u32 |
//   | 24 schema hash u64 |
//
// purpose Link: one lane of a link; the four connections of a link carry the same random link
// number, all links of one process the same random process number. purpose Enrol: the dialler has
// no certificate of the cluster yet and sends one EnrolRequest.
//   EnrolRequest / EnrolReply travel as [u32 bytes][fields], a field being [u32 bytes][bytes].
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace artel::net {

inline constexpr std::size_t kOpeningBytes = 32;
inline constexpr std::size_t kOpeningReplyBytes = 8;
inline constexpr std::size_t kOpeningTextBytesMax = 1024;
inline constexpr std::size_t kEnrolBytesMax = 16 * 1024;

enum class Purpose : std::uint8_t { Link = 1, Enrol = 2 };

struct Opening {
    std::uint16_t version_min = 0;
    std::uint16_t version_max = 0;
    Purpose purpose = Purpose::Link;
    std::uint8_t lane = 0;
    std::uint32_t process = 0;  // tells two processes of one name apart
    std::uint32_t link = 0;
    std::uint64_t schema_hash = 0;  // of the messages' schema in the dialler's newest version

    std::array<std::byte, kOpeningBytes> encode() const;
    static Result<Opening> decode(std::span<const std::byte, kOpeningBytes> bytes);
};

struct OpeningReply {
    bool is_accepted = false;
    std::uint16_t version = 0;  // chosen when accepted, else the acceptor's own newest
    std::string text;           // why not

    std::vector<std::byte> encode() const;
    /// Only the fixed part; `text` is still to be read and `text_bytes` long.
    static Result<OpeningReply> decode_fixed(std::span<const std::byte, kOpeningReplyBytes> bytes,
                                             std::size_t& text_bytes);
};

struct EnrolRequest {
    std::string secret_id;  // raw bytes
    std::string secret;     // raw bytes; the channel is encrypted to the pinned coordinator
    std::string node;       // wanted name
    std::string request_pem;

    std::vector<std::byte> encode() const;
    static Result<EnrolRequest> decode(std::span<const std::byte> bytes);
};

struct EnrolReply {
    std::string error;  // empty: enrolled
    std::string certificate_pem;
    std::string authority_pem;

    std::vector<std::byte> encode() const;
    static Result<EnrolReply> decode(std::span<const std::byte> bytes);
};

/// What this side speaks.
struct Versions {
    std::uint16_t min = 0;
    std::uint16_t max = 0;
    std::uint64_t schema_hash = 0;
};
/// The highest version that both ends speak. Errors name all four numbers and which side to
/// upgrade; two builds that claim one newest version with different schemas do not speak to each
/// other either.
Result<std::uint16_t> choose_version(const Opening& theirs, const Versions& ours);

}  // namespace artel::net
