// SPDX-License-Identifier: Apache-2.0
#include "api/field_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace artel::api {
namespace {

using Json = FieldReader::Json;

/// 5 and 5.0, but not -1, 5.5, "5" or 2^64.
std::optional<std::uint64_t> whole_number(const Json& value) {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    if (!value.is_number_float()) return std::nullopt;
    const double number = value.get<double>();
    if (!(number >= 0 && number <= 0x1p53) || number != std::floor(number)) return std::nullopt;
    return static_cast<std::uint64_t>(number);
}

}  // namespace

void FieldReader::fail(ApiError error) {
    if (!error_) error_ = std::move(error);
}

void FieldReader::fail(std::string_view name, std::string_view message) {
    fail(ApiError::invalid(full_name(name), fmt::format("{}: {}", full_name(name), message)));
}

void FieldReader::fail_unsupported(std::string_view name, std::string_view message) {
    fail(ApiError::unsupported(full_name(name), fmt::format("{}: {}", full_name(name), message)));
}

const Json* FieldReader::find(std::string_view name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void FieldReader::read_bool(std::string_view name, bool& target) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return fail(name, "must be true or false");
    target = value->get<bool>();
}

void FieldReader::read_string(std::string_view name, std::string& target) {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_string()) return fail(name, "must be a string");
    target = value->get<std::string>();
}

void FieldReader::read_number(std::string_view name, float low, float high, float& target) {
    const Json* value = find(name);
    if (value == nullptr) return;
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(number >= low && number <= high))
        return fail(name, fmt::format("must be a number from {} to {}", low, high));
    target = static_cast<float>(number);
}

std::optional<std::uint64_t> FieldReader::integer(std::string_view name, std::uint64_t low,
                                                  std::uint64_t high) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    const auto number = whole_number(*value);
    if (number && *number >= low && *number <= high) return number;
    fail(name, fmt::format("must be a whole number from {} to {}", low, high));
    return std::nullopt;
}

}  // namespace artel::api
