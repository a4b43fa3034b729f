// SPDX-License-Identifier: Apache-2.0
// Value: one metadata value of a GGUF file: a scalar, a string, or an array of either (arrays of
// arrays are refused). Immutable; a scalar is kept as an array of one. Numbers stay as in the file
// and are decoded one by one; strings may hold any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace artel::gguf {

/// The numbers are those in the file.
enum class ValueType : std::uint32_t {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
};
inline constexpr std::uint32_t kValueTypeCount = 13;

/// "u32", "string", ...
std::string_view type_name(ValueType type);
/// Bytes of one element in the file; for String and Array the smallest possible.
std::uint64_t element_bytes_min(ValueType type);

class Value {
  public:
    using Element =
        std::variant<std::uint64_t, std::int64_t, float, double, bool, std::string_view>;

    /// `bytes` holds `count` numbers (or bools of 0 and 1) one after another, little-endian.
    static Value of_numbers(ValueType element_type, std::string bytes, bool is_array);
    /// String i is text[ends[i-1], ends[i]).
    static Value of_strings(std::string text, std::vector<std::uint32_t> ends, bool is_array);

    bool is_array() const { return is_array_; }
    /// Of the scalar, or of the array's elements; never Array.
    ValueType element_type() const { return element_type_; }
    std::size_t count() const { return count_; }
    /// Requires index < count(). A string_view lives as long as this Value stays where it is.
    Element element(std::size_t index) const;
    /// "u32", "array of 12 strings", for messages.
    std::string describe_type() const;

  private:
    bool is_array_ = false;
    ValueType element_type_ = ValueType::U8;
    std::size_t count_ = 0;
    std::string bytes_;
    std::vector<std::uint32_t> ends_;  // of strings only
};

}  // namespace artel::gguf
