// SPDX-License-Identifier: Apache-2.0
// JoinKey: the text that lets a new worker into a cluster. It names where the coordinator listens,
// the certificate authority to trust (by fingerprint, so nobody in between can pose as the
// coordinator) and a secret that the coordinator accepts for an hour. It is a secret: never logged,
// never on a command line that artel itself starts. Text form: "artel1." + base64url of
//   [u8 version=1][32 authority fingerprint][8 secret id][16 secret][host:port as text][4 checksum]
// where checksum is the first 4 bytes of the SHA-256 of all that stands before it (typing errors).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace artel::net {

using Fingerprint = std::array<std::uint8_t, 32>;  // SHA-256 of a certificate in DER form

struct JoinKey {
    Fingerprint authority{};
    std::array<std::uint8_t, 8> secret_id{};
    std::array<std::uint8_t, 16> secret{};
    std::string address;  // host:port of the coordinator's worker port

    std::string to_text() const;
    /// Errors: InvalidArgument saying what is wrong with the text, never quoting it.
    static Result<JoinKey> parse(std::string_view text);
};

}  // namespace artel::net
