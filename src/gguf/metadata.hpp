// SPDX-License-Identifier: Apache-2.0
// Metadata: the typed key-value pairs of a GGUF file, in the file's order. The getters check type
// and range, so that a wrong file is an Error naming key, wanted and found type, and nobody else
// needs to. get_ functions want the key to be there; find_ functions give an empty optional where
// it is not. Immutable after loading; const functions may be called from any thread.
//
// What a getter accepts (documented widening):
//   integers: any integer type of the file whose value is in the range of the wanted type
//   float, double: f32 or f64, finite as the wanted type      bool: bool      string_view: string
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gguf/value.hpp"

namespace artel::gguf {

template <class T, class... Choices>
concept OneOf = (std::same_as<T, Choices> || ...);

template <class T>
concept MetadataType =
    OneOf<T, bool, std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
          std::int32_t, std::uint64_t, std::int64_t, float, double, std::string_view>;

class Metadata {
  public:
    struct Entry {
        std::string key;
        Value value;
    };

    /// Errors: InvalidArgument where the key is there already.
    Error add(std::string key, Value value);

    std::span<const Entry> entries() const { return entries_; }
    bool has(std::string_view key) const { return find_value(key) != nullptr; }
    /// nullptr where the key is absent.
    const Value* find_value(std::string_view key) const;

    /// Views point into this Metadata. Errors: NotFound (get only), InvalidArgument.
    template <MetadataType T>
    Result<T> get(std::string_view key) const;
    template <MetadataType T>
    Result<std::optional<T>> find(std::string_view key) const;
    template <MetadataType T>
    Result<std::vector<T>> get_array(std::string_view key) const;
    template <MetadataType T>
    Result<std::optional<std::vector<T>>> find_array(std::string_view key) const;
    /// Per-layer values: an array of exactly `count` elements, or one scalar repeated.
    template <MetadataType T>
    Result<std::vector<T>> get_each(std::string_view key, std::size_t count) const;
    template <MetadataType T>
    Result<std::optional<std::vector<T>>> find_each(std::string_view key, std::size_t count) const;

  private:
    std::vector<Entry> entries_;
    std::map<std::string, std::size_t, std::less<>> positions_;  // key -> place in entries_
};

}  // namespace artel::gguf
