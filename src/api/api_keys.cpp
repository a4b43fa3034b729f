// SPDX-License-Identifier: Apache-2.0
#include "api/api_keys.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

#include "base/file.hpp"

namespace artel::api {
namespace {

constexpr std::uint64_t kFileBytesMax = 1 << 20;
constexpr std::string_view kScheme = "bearer ";

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::array<std::uint8_t, 32> digest_of(std::string_view key) {
    std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
    return digest;
}

bool is_scheme(std::string_view text) {
    return text.size() >= kScheme.size() &&
           std::equal(kScheme.begin(), kScheme.end(), text.begin(), [](char wanted, char found) {
               return wanted == found || (wanted >= 'a' && wanted - 32 == found);
           });
}

}  // namespace

Result<ApiKeys> ApiKeys::parse(std::string_view text) {
    ApiKeys keys;
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view key = trim(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (key.empty()) continue;
        const bool is_printable =
            std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
        if (!is_printable || key.size() > kBytesMax)
            return invalid_argument("line {}: a key is 1 to {} printable ASCII characters", line,
                                    kBytesMax);
        if (keys.digests_.size() == kCountMax)
            return invalid_argument("line {}: more than {} keys", line, kCountMax);
        keys.digests_.push_back(digest_of(key));
    }
    if (keys.empty()) return invalid_argument("no key found; expected one key a line");
    return keys;
}

Result<ApiKeys> ApiKeys::load(const std::filesystem::path& path) {
    const std::string noun = "API key file " + path.string();
    const auto text = read_file(path, kFileBytesMax);
    if (!text.ok()) return with_context(text.status(), noun);
    auto keys = parse(*text);
    if (!keys.ok()) return with_context(keys.status(), noun);
    return keys;
}

bool ApiKeys::allows(std::optional<std::string_view> authorization) const {
    if (empty()) return true;
    if (!authorization || !is_scheme(*authorization)) return false;
    const Digest given = digest_of(trim(authorization->substr(kScheme.size())));
    bool is_known = false;
    for (const Digest& digest : digests_)  // all of them, so that time says nothing
        is_known |= CRYPTO_memcmp(digest.data(), given.data(), given.size()) == 0;
    return is_known;
}

}  // namespace artel::api
