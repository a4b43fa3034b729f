// SPDX-License-Identifier: Apache-2.0
// Messages <-> bytes. The struct part is protobuf (artel.proto; protobuf is seen in codec.cpp
// only), the payload (activations, weights, logits) rides behind it untouched and uncopied. decode
// checks every field: counts, enums, ranges, lengths, finite floats. Pure; any bytes may be given
// to it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "protocol/messages.hpp"

namespace artel::protocol {

struct EncodedMessage {
    std::uint8_t type = 0;  // index in the variant; never reused for another message
    Lane lane = Lane::Control;
    Epoch epoch;
    std::vector<std::byte> body;
    SharedBytes payload;
};

/// Errors: ResourceExhausted when a limit of protocol/limits.hpp is passed (a caller's bug or an
/// absurd request; nothing is cut off silently).
Result<EncodedMessage> encode(const Message& message);

/// Errors: DataLoss / InvalidArgument naming the message, the field, what was found and expected.
Result<Message> decode(std::uint8_t type, Lane lane, std::span<const std::byte> body,
                       SharedBytes payload);
inline Result<Message> decode(const EncodedMessage& encoded) {
    return decode(encoded.type, encoded.lane, encoded.body, encoded.payload);
}

}  // namespace artel::protocol
