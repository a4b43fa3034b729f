// SPDX-License-Identifier: Apache-2.0
// GenerationOptions: the fields that chat and text completions share, and their reading: types,
// ranges, and the refusal of what a client asks for and artel can't do. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/field_reader.hpp"

namespace artel::api {

inline constexpr std::size_t kStopStringsMax = 4;
inline constexpr std::size_t kStopBytesMax = 1024;  // of one stop string
inline constexpr std::size_t kLogitBiasMax = 1024;
inline constexpr std::uint32_t kChoicesMax = 8;  // "n"

struct Sampling {
    float temperature = 1.0F;
    float top_p = 1.0F;
    std::uint32_t top_k = 0;
    float min_p = 0.0F;
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
    float repetition_penalty = 1.0F;
    std::vector<std::pair<std::uint32_t, float>> logit_bias;
    std::optional<std::uint64_t> seed;
};

struct GenerationOptions {
    std::string model;
    std::optional<std::uint32_t> tokens_max;
    Sampling sampling;
    std::vector<std::string> stops;
    std::uint32_t choices = 1;
    bool is_stream = false;
    bool includes_usage = false;
    bool wants_logprobs = false;
    std::uint32_t top_logprobs = 0;
    bool ignores_end = false;  // "ignore_eos": only tokens_max and stops end the answer
};

/// All but tokens_max and logprobs, which each kind of request has in its own form.
void read_generation_options(FieldReader& fields, GenerationOptions& options);

/// A field that this server can't honour, and the values that ask for nothing.
struct UnbuiltField {
    const char* name;
    std::initializer_list<const char*> harmless_texts = {};
};
/// Refuses each field whose value asks for something: not null, false, {}, [] or a harmless text.
void refuse_unbuilt(FieldReader& fields, std::initializer_list<UnbuiltField> unbuilt);
/// Refuses what both kinds of request may ask for and no artel answers.
void refuse_unbuilt_everywhere(FieldReader& fields);

}  // namespace artel::api
