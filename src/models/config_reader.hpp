// SPDX-License-Identifier: Apache-2.0
// ConfigReader: reads the settings "ARCHITECTURE.name" of a model file and checks their range. The
// first error sticks and names the key; later calls return values that are safe to go on with, so
// that an architecture reads all its settings and asks for the error once.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "gguf/metadata.hpp"

namespace artel::models {

class ConfigReader {
  public:
    /// Counts and lengths above it are refused: products of three of them fit in 64 bits.
    static constexpr std::uint32_t kCountMax = 1U << 20;

    /// Borrows the metadata. `architecture` is the prefix of the keys.
    ConfigReader(const gguf::Metadata& metadata, std::string_view architecture)
        : metadata_(metadata), architecture_(architecture) {}

    /// Whole numbers in [1, kCountMax]; 1 after an error.
    std::uint32_t count(std::string_view name);
    std::uint32_t count_or(std::string_view name, std::uint32_t fallback);
    /// The same, with 0 for "absent or none".
    std::uint32_t count_or_none(std::string_view name);
    /// Finite numbers above 0; 1 after an error.
    float positive(std::string_view name);
    float positive_or(std::string_view name, float fallback);
    /// Finite numbers of at least 0, with 0 for "absent or none".
    float positive_or_none(std::string_view name);
    bool flag_or(std::string_view name, bool fallback);
    /// Empty where absent.
    std::string_view text_or_empty(std::string_view name);
    bool has(std::string_view name) const { return metadata_.has(key(name)); }

    /// Entries of tokenizer.ggml.tokens: the rows that the embedding must have.
    std::uint32_t vocabulary_size();

    /// Records an error of the architecture's own unless `holds`.
    void expect(bool holds, const Error& error);
    std::string key(std::string_view name) const;
    const gguf::Metadata& metadata() const { return metadata_; }
    const Error& error() const { return error_; }

  private:
    template <class T>
    std::optional<T> find(std::string_view name);
    void fail(Error error);
    void fail_absent(std::string_view name);

    const gguf::Metadata& metadata_;
    std::string architecture_;
    Error error_;
};

}  // namespace artel::models
