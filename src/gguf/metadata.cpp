// SPDX-License-Identifier: Apache-2.0
#include "gguf/metadata.hpp"

#include <cmath>
#include <limits>
#include <type_traits>

namespace artel::gguf {

namespace {

template <MetadataType T>
constexpr std::string_view wanted_name() {
    if constexpr (std::same_as<T, bool>) return "bool";
    if constexpr (std::same_as<T, std::string_view>) return "string";
    if constexpr (std::same_as<T, float>) return "f32";
    if constexpr (std::same_as<T, double>) return "f64";
    if constexpr (std::same_as<T, std::uint8_t>) return "u8";
    if constexpr (std::same_as<T, std::int8_t>) return "i8";
    if constexpr (std::same_as<T, std::uint16_t>) return "u16";
    if constexpr (std::same_as<T, std::int16_t>) return "i16";
    if constexpr (std::same_as<T, std::uint32_t>) return "u32";
    if constexpr (std::same_as<T, std::int32_t>) return "i32";
    if constexpr (std::same_as<T, std::uint64_t>) return "u64";
    if constexpr (std::same_as<T, std::int64_t>) return "i64";
}

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::same_as<T, bool>;

/// `found` as T, where it is in range, or nothing where its type does not widen to T.
template <MetadataType T, class Found>
Result<std::optional<T>> convert_to(const Found& found) {
    if constexpr (kIsInteger<Found> && kIsInteger<T>) {
        if (std::in_range<T>(found)) return static_cast<T>(found);
        return invalid_argument("{} is out of the range of {}", found, wanted_name<T>());
    } else if constexpr (std::floating_point<Found> && std::floating_point<T>) {
        const T value = static_cast<T>(found);
        if (std::isfinite(value)) return value;
        return invalid_argument("{} is not a finite {}", found, wanted_name<T>());
    } else if constexpr (std::same_as<Found, T>) {
        return found;
    } else {
        return std::nullopt;
    }
}

template <MetadataType T>
Result<std::optional<T>> convert(const Value::Element& element) {
    return std::visit([](const auto& found) { return convert_to<T>(found); }, element);
}

template <MetadataType T>
Error wrong_type(std::string_view key, std::string_view shape, const Value& value) {
    return invalid_argument("metadata key '{}': wanted {}{}, found {}", key, shape,
                            wanted_name<T>(), value.describe_type());
}

Error missing(std::string_view key) {
    return not_found("metadata key '{}' is missing", key);
}

template <MetadataType T>
Result<T> element_as(std::string_view key, std::string_view shape, const Value& value,
                     std::size_t index) {
    Result<std::optional<T>> converted = convert<T>(value.element(index));
    if (!converted.ok())
        return with_context(converted.status(),
                            value.is_array()
                                ? fmt::format("metadata key '{}', element {}", key, index)
                                : fmt::format("metadata key '{}'", key));
    if (!converted->has_value()) return wrong_type<T>(key, shape, value);
    return **converted;
}

template <MetadataType T>
Result<std::vector<T>> elements_as(std::string_view key, const Value& value) {
    std::vector<T> elements;
    elements.reserve(value.count());
    for (std::size_t i = 0; i < value.count(); ++i) {
        ARTEL_ASSIGN(T element, element_as<T>(key, "array of ", value, i));
        elements.push_back(element);
    }
    return elements;
}

/// The value of a required key out of that of an optional one.
template <class T>
Result<T> require(std::string_view key, Result<std::optional<T>> found) {
    if (!found.ok()) return std::move(found).status();
    if (!found->has_value()) return missing(key);
    return **std::move(found);
}

}  // namespace

Error Metadata::add(std::string key, Value value) {
    if (!positions_.try_emplace(key, entries_.size()).second)
        return invalid_argument("metadata key '{}' occurs twice", key);
    entries_.push_back({std::move(key), std::move(value)});
    return ok();
}

const Value* Metadata::find_value(std::string_view key) const {
    const auto found = positions_.find(key);
    return found == positions_.end() ? nullptr : &entries_[found->second].value;
}

template <MetadataType T>
Result<std::optional<T>> Metadata::find(std::string_view key) const {
    const Value* value = find_value(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_array()) return wrong_type<T>(key, "", *value);
    ARTEL_ASSIGN(T element, element_as<T>(key, "", *value, 0));
    return element;
}

template <MetadataType T>
Result<std::optional<std::vector<T>>> Metadata::find_array(std::string_view key) const {
    const Value* value = find_value(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) return wrong_type<T>(key, "array of ", *value);
    ARTEL_ASSIGN(std::vector<T> elements, elements_as<T>(key, *value));
    return elements;
}

template <MetadataType T>
Result<std::optional<std::vector<T>>> Metadata::find_each(std::string_view key,
                                                          std::size_t count) const {
    const Value* value = find_value(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) {
        ARTEL_ASSIGN(T element, element_as<T>(key, "", *value, 0));
        return std::vector<T>(count, element);
    }
    if (value->count() != count)
        return invalid_argument("metadata key '{}': {} elements, wanted {} or one for all", key,
                                value->count(), count);
    ARTEL_ASSIGN(std::vector<T> elements, elements_as<T>(key, *value));
    return elements;
}

template <MetadataType T>
Result<T> Metadata::get(std::string_view key) const {
    return require<T>(key, find<T>(key));
}

template <MetadataType T>
Result<std::vector<T>> Metadata::get_array(std::string_view key) const {
    return require<std::vector<T>>(key, find_array<T>(key));
}

template <MetadataType T>
Result<std::vector<T>> Metadata::get_each(std::string_view key, std::size_t count) const {
    return require<std::vector<T>>(key, find_each<T>(key, count));
}

#define ARTEL_METADATA_GETTERS(T)                                                               \
    template Result<T> Metadata::get<T>(std::string_view) const;                                \
    template Result<std::optional<T>> Metadata::find<T>(std::string_view) const;                \
    template Result<std::vector<T>> Metadata::get_array<T>(std::string_view) const;             \
    template Result<std::optional<std::vector<T>>> Metadata::find_array<T>(std::string_view)    \
        const;                                                                                  \
    template Result<std::vector<T>> Metadata::get_each<T>(std::string_view, std::size_t) const; \
    template Result<std::optional<std::vector<T>>> Metadata::find_each<T>(std::string_view,     \
                                                                          std::size_t) const;
ARTEL_METADATA_GETTERS(bool)
ARTEL_METADATA_GETTERS(std::uint8_t)
ARTEL_METADATA_GETTERS(std::int8_t)
ARTEL_METADATA_GETTERS(std::uint16_t)
ARTEL_METADATA_GETTERS(std::int16_t)
ARTEL_METADATA_GETTERS(std::uint32_t)
ARTEL_METADATA_GETTERS(std::int32_t)
ARTEL_METADATA_GETTERS(std::uint64_t)
ARTEL_METADATA_GETTERS(std::int64_t)
ARTEL_METADATA_GETTERS(float)
ARTEL_METADATA_GETTERS(double)
ARTEL_METADATA_GETTERS(std::string_view)
#undef ARTEL_METADATA_GETTERS

}  // namespace artel::gguf
