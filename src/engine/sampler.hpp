// SPDX-License-Identifier: Apache-2.0
// Sampler: one row of logits and a sequence's sampling state -> the next token.
// The same logits, state and position give the same token on every machine: arithmetic in double in
// a fixed order, ties broken by the lower token id, and random numbers from Philox 4x32-10 (Salmon
// et al. 2011, Random123) with key (seed, choice) and counter (position, draw), so nothing depends
// on batch mates or on how often a step was repeated. Order of application: logit bias, allow mask,
// repetition / presence / frequency penalties, temperature, top-k, top-p, min-p, draw.
// Log-probabilities are those of the model itself (before all of these). Not thread-safe: one
// Sampler a thread; SamplingState belongs to one sequence.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace artel::engine {

using TokenId = std::uint32_t;

struct SamplingParameters {
    float temperature = 1.0F;        // 0: the most likely token
    std::uint32_t top_k = 0;         // 0: off
    float top_p = 1.0F;              // (0, 1]
    float min_p = 0.0F;              // [0, 1]: relative to the most likely token
    float presence_penalty = 0.0F;   // subtracted once from each generated token
    float frequency_penalty = 0.0F;  // subtracted for each time it was generated
    float repetition_penalty =
        1.0F;  // divides positive and multiplies negative logits of seen tokens
    std::vector<std::pair<TokenId, float>> logit_bias;
    std::uint64_t seed = 0;
    std::uint32_t choice = 0;        // index of the answer within its request
    bool wants_logprob = false;      // of the chosen token
    std::uint32_t top_logprobs = 0;  // and of so many most likely ones; 0..kTopLogprobsMax
};
inline constexpr std::uint32_t kTopLogprobsMax = 20;

/// Errors name the parameter, its value and its range.
Error check_sampling_parameters(const SamplingParameters& parameters,
                                std::uint32_t vocabulary_size);

/// What penalties need to know of a sequence's past: how often each token stood there.
class TokenCounts {
  public:
    struct Entry {
        TokenId token;
        std::uint32_t in_prompt;
        std::uint32_t generated;
    };
    void add_prompt(std::span<const TokenId> tokens);
    void add_generated(TokenId token, std::uint32_t count = 1);
    std::span<const Entry> entries() const { return entries_; }  // ascending by token

  private:
    Entry& entry(TokenId token);
    std::vector<Entry> entries_;
};

struct SamplingState {
    SamplingParameters parameters;
    TokenCounts counts;
};

struct TokenLogprob {
    TokenId token = 0;
    float logprob = 0;  // natural logarithm
};
struct SampledToken {
    TokenId token = 0;
    float logprob = 0;                       // 0 unless wanted
    std::vector<TokenLogprob> top_logprobs;  // most likely first
};

class Sampler {
  public:
    /// `logits`: (vocabulary). `allow_mask`: empty, or one bit a token, ceil(vocabulary / 32)
    /// words. `position` is that of the token to be drawn. Errors: Internal when no logit is finite
    /// or the mask allows nothing.
    Result<SampledToken> sample(std::span<const float> logits, const SamplingState& state,
                                std::uint32_t position,
                                std::span<const std::uint32_t> allow_mask = {});

  private:
    struct Candidate {
        TokenId token;
        double logit;
        double weight;  // exp(logit - largest)
    };
    TokenId draw(const SamplingParameters& parameters, std::uint32_t position);
    std::vector<double> adjusted_;
    std::vector<Candidate> candidates_;
};

}  // namespace artel::engine
