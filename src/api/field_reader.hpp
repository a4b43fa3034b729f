// SPDX-License-Identifier: Apache-2.0
// FieldReader: typed, ranged reads of a JSON object's fields. null counts as absent. The first
// problem is kept and later reads do nothing, so a parser is a plain list of reads.
// Include in .cpp files only (json.hpp).
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
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

    bool has_failed() const { return error_.has_value(); }
    std::optional<ApiError> take_error() { return std::move(error_); }
    void fail(ApiError error) {
        if (!error_) error_ = std::move(error);
    }
    void fail(std::string_view name, std::string message) {
        fail(ApiError::invalid(full_name(name), full_name(name) + ": " + message));
    }
    void fail_unsupported(std::string_view name, std::string_view message) {
        fail(ApiError::unsupported(full_name(name),
                                   fmt::format("{}: {}", full_name(name), message)));
    }
    std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }

    /// The field, or nullptr when it is absent or null.
    const Json* find(std::string_view name) const {
        const auto found = object_.find(name);
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }
    void read_bool(std::string_view name, bool& target) {
        const Json* value = find(name);
        if (value == nullptr) return;
        if (!value->is_boolean()) return fail(name, "must be true or false");
        target = value->get<bool>();
    }
    void read_number(std::string_view name, float low, float high, float& target) {
        const Json* value = find(name);
        if (value == nullptr) return;
        const double number = value->is_number() ? value->get<double>() : std::nan("");
        if (!(number >= low && number <= high))
            return fail(name, fmt::format("must be a number from {} to {}", low, high));
        target = static_cast<float>(number);
    }
    template <class Integer>
    void read_integer(std::string_view name, std::uint64_t low, std::uint64_t high,
                      Integer& target) {
        const Json* value = find(name);
        if (value == nullptr) return;
        const auto number = whole_number(*value);
        if (!number || *number < low || *number > high)
            return fail(name, fmt::format("must be a whole number from {} to {}", low, high));
        target = static_cast<Integer>(*number);
    }
    void read_string(std::string_view name, std::string& target) {
        const Json* value = find(name);
        if (value == nullptr) return;
        if (!value->is_string()) return fail(name, "must be a string");
        target = value->get<std::string>();
    }

  private:
    /// 5 and 5.0, but not -1, 5.5, "5" or 2^64.
    static std::optional<std::uint64_t> whole_number(const Json& value) {
        if (value.is_number_unsigned()) return value.get<std::uint64_t>();
        if (!value.is_number_float()) return std::nullopt;
        const double number = value.get<double>();
        if (!(number >= 0 && number <= 0x1p53) || number != std::floor(number)) return std::nullopt;
        return static_cast<std::uint64_t>(number);
    }

    const Json& object_;
    std::string prefix_;
    std::optional<ApiError> error_;
};

}  // namespace artel::api
