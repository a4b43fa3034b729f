// SPDX-License-Identifier: Apache-2.0
#include "net/join_key.hpp"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <vector>

namespace artel::net {
namespace {

constexpr std::string_view kPrefix = "artel1.";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kFixedBytes = 1 + 32 + 8 + 16;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kAddressBytesMax = 300;

std::string to_base64url(const std::vector<std::uint8_t>& bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
    const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                       static_cast<int>(bytes.size()));
    text.resize(static_cast<std::size_t>(length));
    while (!text.empty() && text.back() == '=') text.pop_back();
    std::replace(text.begin(), text.end(), '+', '-');
    std::replace(text.begin(), text.end(), '/', '_');
    return text;
}

Result<std::vector<std::uint8_t>> from_base64url(std::string_view text) {
    std::string padded(text);
    std::replace(padded.begin(), padded.end(), '-', '+');
    std::replace(padded.begin(), padded.end(), '_', '/');
    const std::size_t padding = (4 - padded.size() % 4) % 4;
    padded.append(padding, '=');
    std::vector<std::uint8_t> bytes(padded.size() / 4 * 3);
    const int length =
        EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(padded.data()),
                        static_cast<int>(padded.size()));
    if (padding == 3 || length < 0)
        return invalid_argument("join key: not base64url text; copy it again");
    bytes.resize(static_cast<std::size_t>(length) - padding);
    return bytes;
}

std::array<std::uint8_t, kChecksumBytes> checksum_of(const std::uint8_t* bytes, std::size_t count) {
    std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
    SHA256(bytes, count, digest.data());
    std::array<std::uint8_t, kChecksumBytes> checksum{};
    std::copy_n(digest.begin(), kChecksumBytes, checksum.begin());
    return checksum;
}

}  // namespace

std::string JoinKey::to_text() const {
    std::vector<std::uint8_t> bytes{kVersion};
    bytes.insert(bytes.end(), authority.begin(), authority.end());
    bytes.insert(bytes.end(), secret_id.begin(), secret_id.end());
    bytes.insert(bytes.end(), secret.begin(), secret.end());
    bytes.insert(bytes.end(), address.begin(), address.end());
    const auto checksum = checksum_of(bytes.data(), bytes.size());
    bytes.insert(bytes.end(), checksum.begin(), checksum.end());
    return std::string(kPrefix) + to_base64url(bytes);
}

Result<JoinKey> JoinKey::parse(std::string_view text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
        text.remove_suffix(1);
    if (!text.starts_with(kPrefix))
        return invalid_argument(
            "join key: expected text that starts with '{}'; `artel key` prints one", kPrefix);
    text.remove_prefix(kPrefix.size());
    if (text.size() > 2 * (kFixedBytes + kAddressBytesMax))
        return invalid_argument("join key: too long");
    ARTEL_ASSIGN(const auto bytes, from_base64url(text));
    if (bytes.size() <= kFixedBytes + kChecksumBytes)
        return invalid_argument("join key: cut short; copy it again");
    const std::size_t body = bytes.size() - kChecksumBytes;
    const auto checksum = checksum_of(bytes.data(), body);
    if (!std::equal(checksum.begin(), checksum.end(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(body)))
        return invalid_argument("join key: its checksum does not match; it was mistyped or cut");
    if (bytes[0] != kVersion)
        return invalid_argument("join key: version {}, this build reads version {}", bytes[0],
                                kVersion);
    JoinKey key;
    auto next = bytes.begin() + 1;
    const auto take = [&next](auto& target) {
        std::copy_n(next, target.size(), target.begin());
        next += static_cast<std::ptrdiff_t>(target.size());
    };
    take(key.authority);
    take(key.secret_id);
    take(key.secret);
    key.address.assign(next, bytes.begin() + static_cast<std::ptrdiff_t>(body));
    const bool is_text = std::all_of(key.address.begin(), key.address.end(),
                                     [](char c) { return c > ' ' && c < 127; });
    if (!is_text || key.address.find(':') == std::string::npos)
        return invalid_argument("join key: holds no host:port address");
    return key;
}

}  // namespace artel::net
