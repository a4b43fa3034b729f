// SPDX-License-Identifier: Apache-2.0
#include "gguf/value.hpp"

#include <fmt/core.h>

#include <cstring>

#include "base/check.hpp"

namespace artel::gguf {

namespace {

struct TypeTraits {
    std::string_view name;
    std::uint64_t bytes_min;
};

// By number in the file.
constexpr TypeTraits kTypes[kValueTypeCount] = {
    {"u8", 1},   {"i8", 1},     {"u16", 2},    {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
    {"bool", 1}, {"string", 8}, {"array", 12}, {"u64", 8}, {"i64", 8}, {"f64", 8},
};

template <class T>
T number_at(const std::string& bytes, std::size_t index) {
    T number;
    std::memcpy(&number, bytes.data() + index * sizeof(T), sizeof(T));
    return number;
}

}  // namespace

std::string_view type_name(ValueType type) {
    return kTypes[static_cast<std::size_t>(type)].name;
}

std::uint64_t element_bytes_min(ValueType type) {
    return kTypes[static_cast<std::size_t>(type)].bytes_min;
}

Value Value::of_numbers(ValueType element_type, std::string bytes, bool is_array) {
    ARTEL_CHECK(element_type != ValueType::String && element_type != ValueType::Array,
                "of_numbers is for numbers");
    Value value;
    value.is_array_ = is_array;
    value.element_type_ = element_type;
    value.count_ = bytes.size() / element_bytes_min(element_type);
    value.bytes_ = std::move(bytes);
    return value;
}

Value Value::of_strings(std::string text, std::vector<std::uint32_t> ends, bool is_array) {
    Value value;
    value.is_array_ = is_array;
    value.element_type_ = ValueType::String;
    value.count_ = ends.size();
    value.bytes_ = std::move(text);
    value.ends_ = std::move(ends);
    return value;
}

Value::Element Value::element(std::size_t index) const {
    ARTEL_CHECK(index < count_, "element index past the end of a metadata value");
    switch (element_type_) {
        case ValueType::U8:
            return std::uint64_t{number_at<std::uint8_t>(bytes_, index)};
        case ValueType::I8:
            return std::int64_t{number_at<std::int8_t>(bytes_, index)};
        case ValueType::U16:
            return std::uint64_t{number_at<std::uint16_t>(bytes_, index)};
        case ValueType::I16:
            return std::int64_t{number_at<std::int16_t>(bytes_, index)};
        case ValueType::U32:
            return std::uint64_t{number_at<std::uint32_t>(bytes_, index)};
        case ValueType::I32:
            return std::int64_t{number_at<std::int32_t>(bytes_, index)};
        case ValueType::F32:
            return number_at<float>(bytes_, index);
        case ValueType::Bool:
            return bytes_[index] != 0;
        case ValueType::U64:
            return number_at<std::uint64_t>(bytes_, index);
        case ValueType::I64:
            return number_at<std::int64_t>(bytes_, index);
        case ValueType::F64:
            return number_at<double>(bytes_, index);
        case ValueType::String: {
            const std::size_t first = index == 0 ? 0 : ends_[index - 1];
            return std::string_view(bytes_).substr(first, ends_[index] - first);
        }
        case ValueType::Array:
            break;
    }
    check_failed(__FILE__, __LINE__, "element_type_ != Array", "arrays of arrays are refused");
}

std::string Value::describe_type() const {
    if (!is_array_) return std::string(type_name(element_type_));
    return fmt::format("array of {} {}", count_, type_name(element_type_));
}

}  // namespace artel::gguf
