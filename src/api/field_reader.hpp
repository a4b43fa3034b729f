// SPDX-License-Identifier: Apache-2.0
// FieldReader: typed, ranged reads of a JSON object's fields. null counts as absent. The first
// problem is kept and later reads do nothing, so a parser is a plain list of reads.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/api_error.hpp"

namespace artel::api {

class FieldReader {
  public:
    using Json = nlohmann::ordered_json;

    /// `object` must be a JSON object; `prefix` goes before names in errors ("messages[3].").
    FieldReader(const Json& object, std::string prefix)
        : object_(object), prefix_(std::move(prefix)) {}

    std::optional<ApiError> take_error() { return std::move(error_); }
    void fail(ApiError error);
    void fail(std::string_view name, std::string_view message);
    void fail_unsupported(std::string_view name, std::string_view message);

    /// The field, or nullptr when it is absent or null.
    const Json* find(std::string_view name) const;
    // Each leaves `target` as it is when the field is absent or wrong.
    void read_bool(std::string_view name, bool& target);
    void read_string(std::string_view name, std::string& target);
    void read_number(std::string_view name, float low, float high, float& target);
    template <class Integer>
    void read_integer(std::string_view name, std::uint64_t low, std::uint64_t high,
                      Integer& target) {
        if (const auto number = integer(name, low, high)) target = static_cast<Integer>(*number);
    }

  private:
    std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }
    std::optional<std::uint64_t> integer(std::string_view name, std::uint64_t low,
                                         std::uint64_t high);

    const Json& object_;
    std::string prefix_;
    std::optional<ApiError> error_;
};

}  // namespace artel::api
