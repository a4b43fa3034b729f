// SPDX-License-Identifier: Apache-2.0
#include "net/opening.hpp"

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"

namespace artel::net {
namespace {

constexpr std::string_view kMagic = "ARTELNET";

void write_fields(ByteWriter& writer, std::initializer_list<const std::string*> fields) {
    for (const std::string* field : fields) {
        writer.write<std::uint32_t>(static_cast<std::uint32_t>(field->size()));
        writer.write_bytes(as_bytes(*field));
    }
}

Error read_fields(std::span<const std::byte> bytes, std::initializer_list<std::string*> fields) {
    if (bytes.size() > kEnrolBytesMax)
        return invalid_argument("enrolment message of {} bytes; at most {}", bytes.size(),
                                kEnrolBytesMax);
    ByteReader reader(bytes);
    for (std::string* field : fields) {
        ARTEL_ASSIGN(const auto length, reader.read<std::uint32_t>());
        ARTEL_ASSIGN(const auto part, reader.read_bytes(length));
        *field = std::string(as_text(part));
    }
    if (reader.remaining() != 0)
        return invalid_argument("enrolment message has {} bytes too many", reader.remaining());
    return ok();
}

}  // namespace

std::array<std::byte, kOpeningBytes> Opening::encode() const {
    ByteWriter writer;
    writer.write_bytes(as_bytes(kMagic));
    writer.write(version_min);
    writer.write(version_max);
    writer.write(static_cast<std::uint8_t>(purpose));
    writer.write(lane);
    writer.write<std::uint16_t>(0);
    writer.write(process);
    writer.write(link);
    writer.write(schema_hash);
    std::array<std::byte, kOpeningBytes> bytes{};
    const auto written = writer.take();
    std::copy(written.begin(), written.end(), bytes.begin());
    return bytes;
}

Result<Opening> Opening::decode(std::span<const std::byte, kOpeningBytes> bytes) {
    ByteReader reader(bytes);
    ARTEL_ASSIGN(const auto magic, reader.read_bytes(kMagic.size()));
    if (as_text(magic) != kMagic)
        return invalid_argument("the peer does not speak artel's protocol");
    Opening opening;
    ARTEL_ASSIGN(opening.version_min, reader.read<std::uint16_t>());
    ARTEL_ASSIGN(opening.version_max, reader.read<std::uint16_t>());
    ARTEL_ASSIGN(const auto purpose, reader.read<std::uint8_t>());
    ARTEL_ASSIGN(opening.lane, reader.read<std::uint8_t>());
    ARTEL_ASSIGN(const auto zero, reader.read<std::uint16_t>());
    ARTEL_ASSIGN(opening.process, reader.read<std::uint32_t>());
    ARTEL_ASSIGN(opening.link, reader.read<std::uint32_t>());
    ARTEL_ASSIGN(opening.schema_hash, reader.read<std::uint64_t>());
    if (purpose != static_cast<std::uint8_t>(Purpose::Link) &&
        purpose != static_cast<std::uint8_t>(Purpose::Enrol))
        return invalid_argument("opening: purpose {} is unknown", purpose);
    if (zero != 0 || opening.version_min > opening.version_max)
        return invalid_argument("opening: fields that contradict each other");
    opening.purpose = static_cast<Purpose>(purpose);
    return opening;
}

std::vector<std::byte> OpeningReply::encode() const {
    const std::string_view shown = std::string_view(text).substr(0, kOpeningTextBytesMax);
    ByteWriter writer;
    writer.write<std::uint8_t>(is_accepted ? 1 : 0);
    writer.write<std::uint8_t>(0);
    writer.write(version);
    writer.write<std::uint16_t>(static_cast<std::uint16_t>(shown.size()));
    writer.write<std::uint16_t>(0);
    writer.write_bytes(as_bytes(shown));
    return writer.take();
}

Result<OpeningReply> OpeningReply::decode_fixed(
    std::span<const std::byte, kOpeningReplyBytes> bytes, std::size_t& text_bytes) {
    ByteReader reader(bytes);
    OpeningReply reply;
    ARTEL_ASSIGN(const auto accepted, reader.read<std::uint8_t>());
    ARTEL_ASSIGN(const auto zero, reader.read<std::uint8_t>());
    ARTEL_ASSIGN(reply.version, reader.read<std::uint16_t>());
    ARTEL_ASSIGN(const auto length, reader.read<std::uint16_t>());
    if (accepted > 1 || zero != 0 || length > kOpeningTextBytesMax)
        return invalid_argument("the peer's answer to the opening is malformed");
    reply.is_accepted = accepted == 1;
    text_bytes = length;
    return reply;
}

std::vector<std::byte> EnrolRequest::encode() const {
    ByteWriter writer;
    write_fields(writer, {&secret_id, &secret, &node, &request_pem});
    return writer.take();
}

Result<EnrolRequest> EnrolRequest::decode(std::span<const std::byte> bytes) {
    EnrolRequest request;
    ARTEL_TRY(read_fields(
        bytes, {&request.secret_id, &request.secret, &request.node, &request.request_pem}));
    return request;
}

std::vector<std::byte> EnrolReply::encode() const {
    ByteWriter writer;
    write_fields(writer, {&error, &certificate_pem, &authority_pem});
    return writer.take();
}

Result<EnrolReply> EnrolReply::decode(std::span<const std::byte> bytes) {
    EnrolReply reply;
    ARTEL_TRY(read_fields(bytes, {&reply.error, &reply.certificate_pem, &reply.authority_pem}));
    return reply;
}

Result<std::uint16_t> choose_version(const Opening& theirs, const Versions& ours) {
    const std::uint16_t best = std::min(theirs.version_max, ours.max);
    if (best < theirs.version_min || best < ours.min)
        return failed_precondition(
            "protocol versions do not meet: the dialling side speaks {} to {}, this side {} to {}; "
            "upgrade the {} side",
            theirs.version_min, theirs.version_max, ours.min, ours.max,
            theirs.version_max < ours.min ? "dialling" : "other");
    if (theirs.version_max == ours.max && theirs.schema_hash != ours.schema_hash)
        return failed_precondition(
            "both sides speak protocol version {} but with different schemas ({:016x} and "
            "{:016x}); use the same build",
            ours.max, theirs.schema_hash, ours.schema_hash);
    return best;
}

}  // namespace artel::net
