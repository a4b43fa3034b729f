// SPDX-License-Identifier: Apache-2.0
#include "protocol/frame.hpp"

#include <algorithm>
#include <utility>

#include "protocol/hash.hpp"

namespace artel::protocol {

namespace {

constexpr std::uint16_t kFlagMore = 1;
constexpr std::uint16_t kHeaderLenMax = 1024;  // what a later version may need

std::uint64_t parts_bytes(const FrameHeader& header) {
    return std::uint64_t{header.header_len} + header.body_len + header.payload_len;
}

Error check_sizes(const FrameHeader& h) {
    if (parts_bytes(h) > kFrameBytesMax)
        return invalid_argument("a frame of {} bytes, at most {}", parts_bytes(h), kFrameBytesMax);
    if (h.payload_total > kMessagePayloadBytesMax)
        return invalid_argument("a message with {} bytes of payload, at most {}", h.payload_total,
                                kMessagePayloadBytesMax);
    if (h.payload_offset > h.payload_total || h.payload_len > h.payload_total - h.payload_offset)
        return invalid_argument("payload bytes [{}, +{}) of {}", h.payload_offset, h.payload_len,
                                h.payload_total);
    const bool is_last = h.payload_offset + h.payload_len == h.payload_total;
    if (h.has_more == is_last)
        return invalid_argument("payload bytes [{}, +{}) of {}, but flag 'more' is {}",
                                h.payload_offset, h.payload_len, h.payload_total, h.has_more);
    if (h.has_more && h.payload_len == 0)
        return invalid_argument("a frame that adds nothing to an unfinished message");
    return ok();
}

const char* looks_like(std::uint32_t magic) {
    const auto byte = static_cast<unsigned char>(magic & 0xFFU);
    if (magic == 0x20544547 || magic == 0x54534F50) return " (an HTTP request?)";
    if (byte == 0x16) return " (a TLS hello?)";
    return "";
}

}  // namespace

std::array<std::byte, kFrameHeaderBytes> write_frame_header(const FrameHeader& header) {
    ByteWriter writer;
    writer.write(kFrameMagic);
    writer.write(header.version);
    writer.write(header.header_len);
    writer.write(static_cast<std::uint8_t>(header.lane));
    writer.write(header.type);
    writer.write(header.has_more ? kFlagMore : std::uint16_t{0});
    writer.write(header.body_len);
    writer.write(header.payload_len);
    writer.write(std::uint32_t{0});
    writer.write(header.epoch.term);
    writer.write(header.epoch.number);
    writer.write(header.payload_total);
    writer.write(header.payload_offset);
    writer.write(header.checksum);
    std::array<std::byte, kFrameHeaderBytes> bytes{};
    const std::vector<std::byte> written = writer.take();
    std::copy_n(written.begin(), std::min(written.size(), bytes.size()), bytes.begin());
    return bytes;
}

Result<FrameHeader> read_frame_header(std::span<const std::byte> bytes) {
    if (bytes.size() < kFrameHeaderBytes)
        return data_loss("a frame header of {} bytes, expected {}", bytes.size(),
                         kFrameHeaderBytes);
    ByteReader reader(bytes);
    FrameHeader header;
    ARTEL_ASSIGN(const auto magic, reader.read<std::uint32_t>());
    if (magic != kFrameMagic)
        return invalid_argument("a frame starts with {:08x}, expected {:08x}{}", magic, kFrameMagic,
                                looks_like(magic));
    ARTEL_ASSIGN(header.version, reader.read<std::uint16_t>());
    ARTEL_ASSIGN(header.header_len, reader.read<std::uint16_t>());
    ARTEL_ASSIGN(const auto lane, reader.read<std::uint8_t>());
    ARTEL_ASSIGN(header.type, reader.read<std::uint8_t>());
    ARTEL_ASSIGN(const auto flags, reader.read<std::uint16_t>());
    ARTEL_ASSIGN(header.body_len, reader.read<std::uint32_t>());
    ARTEL_ASSIGN(header.payload_len, reader.read<std::uint32_t>());
    ARTEL_ASSIGN([[maybe_unused]] const auto reserved, reader.read<std::uint32_t>());
    ARTEL_ASSIGN(header.epoch.term, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(header.epoch.number, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(header.payload_total, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(header.payload_offset, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(header.checksum, reader.read<std::uint64_t>());
    if (header.header_len < kFrameHeaderBytes || header.header_len > kHeaderLenMax)
        return invalid_argument("a frame header of {} bytes, expected {} to {}", header.header_len,
                                kFrameHeaderBytes, kHeaderLenMax);
    if (lane >= kLaneCount) return invalid_argument("lane {}, expected 0 to 3", lane);
    header.lane = static_cast<Lane>(lane);
    header.has_more = (flags & kFlagMore) != 0;
    ARTEL_TRY(check_sizes(header));
    return header;
}

Result<std::uint64_t> frame_bytes(std::span<const std::byte> header) {
    ARTEL_ASSIGN(const FrameHeader read, read_frame_header(header));
    return parts_bytes(read);
}

SharedBytes Frame::to_bytes() const {
    if (payload.empty()) return SharedBytes(head);
    std::vector<std::byte> bytes;
    bytes.reserve(size());
    bytes.insert(bytes.end(), head.begin(), head.end());
    bytes.insert(bytes.end(), payload.span().begin(), payload.span().end());
    return SharedBytes(std::move(bytes));
}

std::vector<Frame> make_frames(const EncodedMessage& message, std::uint32_t version) {
    std::vector<Frame> frames;
    std::uint64_t offset = 0;
    do {
        const std::size_t body_len = offset == 0 ? message.body.size() : 0;
        const std::size_t room = kFrameBytesMax - kFrameHeaderBytes - body_len;
        const std::size_t part = std::min<std::size_t>(room, message.payload.size() - offset);
        Frame frame{{}, message.payload.slice(offset, part)};
        FrameHeader header;
        header.version = static_cast<std::uint16_t>(version);
        header.lane = message.lane;
        header.type = message.type;
        header.has_more = offset + part < message.payload.size();
        header.body_len = static_cast<std::uint32_t>(body_len);
        header.payload_len = static_cast<std::uint32_t>(part);
        header.epoch = message.epoch;
        header.payload_total = message.payload.size();
        header.payload_offset = offset;
        const auto body = std::span(message.body).first(body_len);
        header.checksum = frame_checksum(body, frame.payload.span());
        const auto head = write_frame_header(header);
        frame.head.assign(head.begin(), head.end());
        frame.head.insert(frame.head.end(), body.begin(), body.end());
        offset += part;
        frames.push_back(std::move(frame));
    } while (offset < message.payload.size());
    return frames;
}

Error FrameReader::check_continuation(const FrameHeader& header) const {
    if (!unfinished_) {
        if (header.payload_offset == 0) return ok();
        return invalid_argument("a message starts at payload byte {}", header.payload_offset);
    }
    if (header.type == unfinished_->type && header.epoch == unfinished_->epoch &&
        header.body_len == 0 && header.payload_total == payload_total_ &&
        header.payload_offset == payload_.size())
        return ok();
    return invalid_argument(
        "a frame of type {} at payload byte {} does not go on with type {} at "
        "byte {} of {}",
        header.type, header.payload_offset, unfinished_->type, payload_.size(), payload_total_);
}

Error FrameReader::take_frame(const FrameHeader& header, std::span<const std::byte> rest,
                              std::vector<EncodedMessage>& out) {
    if (lane_ && header.lane != *lane_)
        return invalid_argument("a frame of lane {} on lane {}", static_cast<int>(header.lane),
                                static_cast<int>(*lane_));
    lane_ = header.lane;
    ARTEL_TRY(check_continuation(header));
    const auto body = rest.first(header.body_len);
    const auto payload = rest.subspan(header.body_len, header.payload_len);
    if (frame_checksum(body, payload) != header.checksum)
        return data_loss("a frame of type {} is damaged (checksum)", header.type);
    if (!unfinished_) {
        unfinished_.emplace(EncodedMessage{header.type,
                                           header.lane,
                                           header.epoch,
                                           std::vector<std::byte>(body.begin(), body.end()),
                                           {}});
        payload_total_ = header.payload_total;
    }
    payload_.insert(payload_.end(), payload.begin(), payload.end());
    if (header.has_more) return ok();
    unfinished_->payload = SharedBytes(std::exchange(payload_, {}));
    out.push_back(std::move(*unfinished_));
    unfinished_.reset();
    return ok();
}

Error FrameReader::read(std::span<const std::byte> bytes, std::vector<EncodedMessage>& out) {
    // A whole frame in one piece, the usual case, is taken without a copy.
    while (!bytes.empty() || !buffer_.empty()) {
        const std::size_t held = buffer_.size();
        std::uint64_t wanted = kFrameHeaderBytes;
        const auto head = held >= wanted ? std::span<const std::byte>(buffer_) : bytes;
        const bool has_head = held >= wanted || (held == 0 && bytes.size() >= wanted);
        FrameHeader header;
        if (has_head) {
            ARTEL_ASSIGN(header, read_frame_header(head));
            wanted = parts_bytes(header);
            if (held == 0 && bytes.size() >= wanted) {
                const auto frame = bytes.first(wanted);
                ARTEL_TRY(take_frame(header, frame.subspan(header.header_len), out));
                bytes = bytes.subspan(wanted);
                continue;
            }
        }
        const std::size_t part = std::min<std::size_t>(bytes.size(), wanted - held);
        buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<long>(part));
        bytes = bytes.subspan(part);
        if (buffer_.size() < wanted) return ok();
        if (!has_head) continue;  // now the header can be read
        ARTEL_TRY(take_frame(header, std::span(buffer_).subspan(header.header_len), out));
        buffer_.clear();
    }
    return ok();
}

}  // namespace artel::protocol
