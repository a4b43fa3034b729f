// SPDX-License-Identifier: Apache-2.0
// tidy: helper
#include "models/config_reader.hpp"

#include <utility>

namespace artel::models {

namespace {
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::size_t kVocabularyMax = std::size_t{1} << 24;
}  // namespace

std::string ConfigReader::key(std::string_view name) const {
    return architecture_ + "." + std::string(name);
}

void ConfigReader::fail(Error error) {
    if (error_.ok()) error_ = std::move(error);
}

void ConfigReader::fail_absent(std::string_view name) {
    fail(invalid_argument("{} is missing, and a {} model needs it", key(name), architecture_));
}

void ConfigReader::expect(bool holds, const Error& error) {
    if (!holds) fail(error);
}

template <class T>
std::optional<T> ConfigReader::find(std::string_view name) {
    auto found = metadata_.find<T>(key(name));
    if (found.ok()) return *std::move(found);
    fail(found.status());
    return std::nullopt;
}

std::uint32_t ConfigReader::count(std::string_view name) {
    if (!has(name)) fail_absent(name);
    return count_or(name, 1);
}

std::uint32_t ConfigReader::count_or(std::string_view name, std::uint32_t fallback) {
    const auto found = find<std::uint64_t>(name);
    if (!found) return fallback;
    if (*found >= 1 && *found <= kCountMax) return static_cast<std::uint32_t>(*found);
    fail(invalid_argument("{} is {}, expected 1 to {}", key(name), *found, kCountMax));
    return 1;
}

std::uint32_t ConfigReader::count_or_none(std::string_view name) {
    const auto found = find<std::uint64_t>(name);
    return found && *found == 0 ? 0 : count_or(name, 0);
}

float ConfigReader::positive(std::string_view name) {
    if (!has(name)) fail_absent(name);
    return positive_or(name, 1);
}

float ConfigReader::positive_or(std::string_view name, float fallback) {
    const auto found = find<float>(name);
    if (!found) return fallback;
    if (*found > 0) return *found;
    fail(invalid_argument("{} is {}, expected a number above 0", key(name), *found));
    return 1;
}

float ConfigReader::positive_or_none(std::string_view name) {
    const auto found = find<float>(name);
    return found && *found == 0 ? 0 : positive_or(name, 0);
}

bool ConfigReader::flag_or(std::string_view name, bool fallback) {
    return find<bool>(name).value_or(fallback);
}

std::string_view ConfigReader::text_or_empty(std::string_view name) {
    return find<std::string_view>(name).value_or(std::string_view());
}

std::uint32_t ConfigReader::vocabulary_size() {
    const gguf::Value* tokens = metadata_.find_value(kTokensKey);
    if (tokens == nullptr) {
        fail(invalid_argument("{} is missing, so the size of the vocabulary is unknown",
                              kTokensKey));
        return 1;
    }
    if (!tokens->is_array() || tokens->element_type() != gguf::ValueType::String) {
        fail(invalid_argument("{} is {}, expected an array of strings", kTokensKey,
                              tokens->describe_type()));
        return 1;
    }
    if (tokens->count() >= 1 && tokens->count() <= kVocabularyMax)
        return static_cast<std::uint32_t>(tokens->count());
    fail(invalid_argument("{} has {} entries, expected 1 to {}", kTokensKey, tokens->count(),
                          kVocabularyMax));
    return 1;
}

}  // namespace artel::models
