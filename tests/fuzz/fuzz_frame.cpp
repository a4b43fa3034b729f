// SPDX-License-Identifier: Apache-2.0
// Any bytes on a lane: the frame reader and the codec give messages or an Error, in bounded memory,
// and what they took is encoded and read again as the same. The first byte chooses how the bytes
// are cut into pieces; a body's checksum is repaired first in one of two modes, so that the codec
// is reached too.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "protocol/codec.hpp"
#include "protocol/frame.hpp"
#include "protocol/hash.hpp"
#include "protocol/version.hpp"

namespace artel::protocol {
namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void take(const EncodedMessage& message) {
    const auto decoded = decode(message);
    if (!decoded.ok()) return;
    const auto again = encode(*decoded);
    require(again.ok());
    const auto twice = decode(*again);
    require(twice.ok() && twice->index() == decoded->index());
    const auto last = encode(*twice);
    require(last.ok() && last->body == again->body);
    FrameReader reader;
    std::vector<EncodedMessage> out;
    for (const Frame& frame : make_frames(*again, kVersion))
        require(reader.read(frame.to_bytes().span(), out).ok());
    require(out.size() == 1 && out[0].body == again->body);
}

/// Sets the checksum of the first frame to what its bytes say.
void repair(std::vector<std::byte>& bytes) {
    const auto header = read_frame_header(bytes);
    if (!header.ok()) return;
    const std::uint64_t end =
        std::uint64_t{header->header_len} + header->body_len + header->payload_len;
    if (end > bytes.size()) return;
    const auto rest = std::span(bytes).subspan(header->header_len);
    const std::uint64_t checksum = frame_checksum(
        rest.first(header->body_len), rest.subspan(header->body_len, header->payload_len));
    std::memcpy(bytes.data() + 56, &checksum, sizeof(checksum));
}

void run(std::span<const std::byte> data) {
    if (data.size() < 2) return;
    const auto mode = std::to_integer<unsigned>(data[0]);
    std::vector<std::byte> bytes(data.begin() + 1, data.end());
    if ((mode & 1U) != 0) repair(bytes);
    const std::size_t piece = 1 + (mode >> 1U);
    FrameReader reader;
    std::vector<EncodedMessage> out;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        const std::size_t count = std::min(piece, bytes.size() - at);
        if (!reader.read(std::span(bytes).subspan(at, count), out).ok()) break;
        require(reader.pending_bytes() <= bytes.size());
    }
    for (const EncodedMessage& message : out) take(message);
    // The codec alone, without a frame around it.
    const auto type = std::to_integer<std::uint8_t>(data[0]) % std::variant_size_v<Message>;
    for (const Lane lane : {Lane::Control, Lane::Decode, Lane::Weights})
        if (const auto decoded = decode(static_cast<std::uint8_t>(type), lane, bytes, {});
            decoded.ok())
            take(*encode(*decoded));
}

}  // namespace
}  // namespace artel::protocol

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    artel::protocol::run(std::as_bytes(std::span(data, size)));
    return 0;
}
