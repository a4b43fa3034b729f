// SPDX-License-Identifier: Apache-2.0
// ApiKeys: who may use the API. Holds digests only, compares all of them in constant time, and
// never puts a key in a message. No keys at all means that everybody may.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace artel::api {

class ApiKeys {
  public:
    static constexpr std::size_t kCountMax = 1024;
    static constexpr std::size_t kBytesMax = 512;  // of one key

    ApiKeys() = default;
    /// One key a line; spaces around it and empty lines don't count. Errors: no key, a character
    /// that a header can't hold, too long, too many; or the file can't be read.
    static Result<ApiKeys> parse(std::string_view text);
    static Result<ApiKeys> load(const std::filesystem::path& path);

    bool empty() const { return digests_.empty(); }
    /// `authorization`: the header's value, "Bearer KEY".
    bool allows(std::optional<std::string_view> authorization) const;

  private:
    using Digest = std::array<std::uint8_t, 32>;  // SHA-256
    std::vector<Digest> digests_;
};

}  // namespace artel::api
