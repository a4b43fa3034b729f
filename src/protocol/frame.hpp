// SPDX-License-Identifier: Apache-2.0
// Frames: how messages lie on a connection. A frame is at most kFrameBytesMax. A message is one
// frame, or, when its payload is larger, a run of frames on the same connection with nothing
// between (the body stands in the first). Pure: bytes in, messages out; the fuzzer's entry.
// Little-endian:
//
//   0 magic "ARTL"   4 u16 version   6 u16 header_len (64; a later version may be longer)
//   8 u8 lane        9 u8 type      10 u16 flags (bit 0: more frames of this message follow)
//  12 u32 body_len  16 u32 payload_len (of this frame)  20 u32 reserved, 0
//  24 u64 epoch.term  32 u64 epoch.number
//  40 u64 payload_total (of the message)   48 u64 payload_offset (of this frame's part)
//  56 u64 checksum: XXH3-64 of payload part, seed XXH3-64 of body
//  64 body, then payload part
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "protocol/codec.hpp"
#include "protocol/limits.hpp"

namespace artel::protocol {

inline constexpr std::uint32_t kFrameHeaderBytes = 64;
inline constexpr std::uint32_t kFrameMagic = 0x4C545241;  // "ARTL"

struct FrameHeader {
    std::uint16_t version = 0;
    std::uint16_t header_len = kFrameHeaderBytes;
    Lane lane = Lane::Control;
    std::uint8_t type = 0;
    bool has_more = false;
    std::uint32_t body_len = 0;
    std::uint32_t payload_len = 0;
    Epoch epoch;
    std::uint64_t payload_total = 0;
    std::uint64_t payload_offset = 0;
    std::uint64_t checksum = 0;
};

std::array<std::byte, kFrameHeaderBytes> write_frame_header(const FrameHeader& header);
/// `bytes`: at least kFrameHeaderBytes. Errors: InvalidArgument naming the field; a wrong magic
/// says what the bytes look like (an HTTP request, a TLS hello).
Result<FrameHeader> read_frame_header(std::span<const std::byte> bytes);

/// The length of the whole frame, from its header. Errors as read_frame_header.
Result<std::uint64_t> frame_bytes(std::span<const std::byte> header);

/// One frame ready to send: header and body to be written first, then the payload part.
struct Frame {
    std::vector<std::byte> head;  // header and body
    SharedBytes payload;          // shares the message's bytes
    std::size_t size() const { return head.size() + payload.size(); }
    /// Both parts in one piece (a copy).
    SharedBytes to_bytes() const;
};
/// The frames of a message, in order.
std::vector<Frame> make_frames(const EncodedMessage& message, std::uint32_t version);

/// Collects the bytes of one connection into messages. Memory grows with the bytes that arrived,
/// not with the sizes claimed. After an error the connection must be closed.
class FrameReader {
  public:
    /// Only frames of `lane` are taken (a connection carries one). Without it: the first frame's.
    explicit FrameReader(std::optional<Lane> lane = std::nullopt) : lane_(lane) {}

    /// Takes any number of bytes and appends whole messages to `out`.
    Error read(std::span<const std::byte> bytes, std::vector<EncodedMessage>& out);
    /// Bytes held of an unfinished message.
    std::size_t pending_bytes() const { return buffer_.size() + payload_.size(); }

  private:
    Error take_frame(const FrameHeader& header, std::span<const std::byte> rest,
                     std::vector<EncodedMessage>& out);
    Error check_continuation(const FrameHeader& header) const;

    std::optional<Lane> lane_;
    std::vector<std::byte> buffer_;  // bytes of the frame being read
    std::optional<EncodedMessage> unfinished_;
    std::uint64_t payload_total_ = 0;
    std::vector<std::byte> payload_;  // of the unfinished message
};

}  // namespace artel::protocol
