// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.hpp"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"

namespace artel::engine {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

/// exp(x) for x <= 0 from IEEE operations alone, so that every libm gives the same token.
/// x = n ln 2 + r, |r| <= ln2/2; Taylor to degree 13 (next term < 3e-17 relative).
double stable_exp(double x) {
    if (!(x > -700.0)) return 0.0;
    const double n = std::nearbyint(x * 1.4426950408889634);
    const double r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    double sum = 1.0;
    for (int k = 13; k >= 1; --k) sum = 1.0 + sum * r / k;
    return std::ldexp(sum, static_cast<int>(n));
}

/// Natural logarithm of a positive finite value, to about 1e-15, from IEEE operations alone:
/// x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m-1)/(m+1)).
double stable_log(double x) {
    int exponent = 0;
    double m = std::frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        --exponent;
    }
    const double t = (m - 1) / (m + 1);
    const double square = t * t;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
    return exponent * 0.69314718055994530942 + 2 * t * sum;
}

double uniform(const SamplingParameters& parameters, std::uint32_t position) {
    using Philox = r123::Philox4x32;
    const Philox::key_type key{
        {static_cast<std::uint32_t>(parameters.seed) ^ (parameters.choice * 0x9E3779B9U),
         static_cast<std::uint32_t>(parameters.seed >> 32)}};
    const Philox::ctr_type counter{{position, 0, parameters.choice, 0}};
    const Philox::ctr_type bits = Philox()(counter, key);
    const std::uint64_t wide = (static_cast<std::uint64_t>(bits[0]) << 32) | bits[1];
    return static_cast<double>(wide >> 11) * 0x1.0p-53;
}

struct Softmax {
    double largest = kNone;
    double log_sum = 0;
};

Softmax softmax_of(std::span<const float> logits) {
    Softmax result;
    for (const float logit : logits)
        result.largest = std::max(result.largest, static_cast<double>(logit));
    double sum = 0;
    for (const float logit : logits) sum += stable_exp(static_cast<double>(logit) - result.largest);
    result.log_sum = stable_log(sum);
    return result;
}

void add_logprobs(std::span<const float> logits, const SamplingParameters& parameters,
                  SampledToken& sampled) {
    const Softmax softmax = softmax_of(logits);
    const auto logprob = [&](TokenId token) {
        return static_cast<float>(static_cast<double>(logits[token]) - softmax.largest -
                                  softmax.log_sum);
    };
    sampled.logprob = logprob(sampled.token);
    const std::size_t count = std::min<std::size_t>(parameters.top_logprobs, logits.size());
    if (count == 0) return;
    std::vector<TokenId> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](TokenId a, TokenId b) {
                          return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                      });
    for (std::size_t i = 0; i < count; ++i)
        sampled.top_logprobs.push_back({order[i], logprob(order[i])});
}

void apply_penalties(const SamplingState& state, std::span<double> logits) {
    const SamplingParameters& parameters = state.parameters;
    for (const TokenCounts::Entry& entry : state.counts.entries()) {
        if (entry.token >= logits.size()) continue;
        double& logit = logits[entry.token];
        if (parameters.repetition_penalty != 1.0F)
            logit = logit > 0 ? logit / parameters.repetition_penalty
                              : logit * parameters.repetition_penalty;
        if (entry.generated == 0) continue;
        logit -= parameters.presence_penalty;
        logit -= static_cast<double>(parameters.frequency_penalty) * entry.generated;
    }
}

Error check_range(const char* name, float value, float low, float high) {
    if (value >= low && value <= high) return ok();
    return invalid_argument("{} is {}; expected {} to {}", name, value, low, high);
}

}  // namespace

Error check_sampling_parameters(const SamplingParameters& parameters,
                                std::uint32_t vocabulary_size) {
    ARTEL_TRY(check_range("temperature", parameters.temperature, 0, 100));
    ARTEL_TRY(check_range("top_p", parameters.top_p, 0, 1));
    ARTEL_TRY(check_range("min_p", parameters.min_p, 0, 1));
    ARTEL_TRY(check_range("presence_penalty", parameters.presence_penalty, -100, 100));
    ARTEL_TRY(check_range("frequency_penalty", parameters.frequency_penalty, -100, 100));
    ARTEL_TRY(check_range("repetition_penalty", parameters.repetition_penalty, 0.01F, 100));
    if (parameters.top_logprobs > kTopLogprobsMax)
        return invalid_argument("top_logprobs is {}; expected 0 to {}", parameters.top_logprobs,
                                kTopLogprobsMax);
    for (const auto& [token, bias] : parameters.logit_bias) {
        if (token >= vocabulary_size)
            return invalid_argument("logit_bias names token {}; the vocabulary has {}", token,
                                    vocabulary_size);
        ARTEL_TRY(check_range("logit_bias", bias, -1000, 1000));
    }
    return ok();
}

TokenCounts::Entry& TokenCounts::entry(TokenId token) {
    const auto place =
        std::lower_bound(entries_.begin(), entries_.end(), token,
                         [](const Entry& entry, TokenId wanted) { return entry.token < wanted; });
    if (place != entries_.end() && place->token == token) return *place;
    return *entries_.insert(place, Entry{token, 0, 0});
}

void TokenCounts::add_prompt(std::span<const TokenId> tokens) {
    for (const TokenId token : tokens) ++entry(token).in_prompt;
}

void TokenCounts::add_generated(TokenId token, std::uint32_t count) {
    entry(token).generated += count;
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingState& state,
                                     std::uint32_t position,
                                     std::span<const std::uint32_t> allow_mask) {
    ARTEL_CHECK(allow_mask.empty() || allow_mask.size() == (logits.size() + 31) / 32,
                "mask of another vocabulary");
    const SamplingParameters& parameters = state.parameters;
    adjusted_.assign(logits.begin(), logits.end());
    for (const auto& [token, bias] : parameters.logit_bias)
        if (token < adjusted_.size()) adjusted_[token] += bias;
    for (std::size_t token = 0; token < adjusted_.size() && !allow_mask.empty(); ++token)
        if (((allow_mask[token / 32] >> (token % 32)) & 1U) == 0) adjusted_[token] = kNone;
    apply_penalties(state, adjusted_);

    std::size_t best = adjusted_.size();
    for (std::size_t token = 0; token < adjusted_.size(); ++token) {
        if (std::isnan(adjusted_[token]))
            return internal_error("logit of token {} is not a number", token);
        if (adjusted_[token] > (best < adjusted_.size() ? adjusted_[best] : kNone)) best = token;
    }
    if (best == adjusted_.size())
        return internal_error("no token can be chosen: every logit is -infinity or masked");

    SampledToken sampled{.token = static_cast<TokenId>(best), .logprob = 0, .top_logprobs = {}};
    if (parameters.temperature > 0 && parameters.top_k != 1)
        sampled.token = draw(parameters, position);
    if (parameters.wants_logprob || parameters.top_logprobs > 0)
        add_logprobs(logits, parameters, sampled);
    return sampled;
}

TokenId Sampler::draw(const SamplingParameters& parameters, std::uint32_t position) {
    double largest = kNone;
    for (const double logit : adjusted_) largest = std::max(largest, logit);
    candidates_.clear();
    double total = 0;
    for (std::size_t token = 0; token < adjusted_.size(); ++token) {
        const double weight = stable_exp((adjusted_[token] - largest) / parameters.temperature);
        if (weight <= 0 || weight < parameters.min_p) continue;
        candidates_.push_back({static_cast<TokenId>(token), adjusted_[token], weight});
        total += weight;
    }
    const auto more_likely = [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    };
    std::size_t kept = candidates_.size();
    if (parameters.top_k > 0 && parameters.top_k < kept) {
        kept = parameters.top_k;
        std::partial_sort(candidates_.begin(),
                          candidates_.begin() + static_cast<std::ptrdiff_t>(kept),
                          candidates_.end(), more_likely);
        total = 0;
        for (std::size_t i = 0; i < kept; ++i) total += candidates_[i].weight;
    }
    if (parameters.top_p < 1.0F) {
        // Sorts growing heads only: the nucleus is nearly always short, the vocabulary long.
        double mass = 0;
        std::size_t sorted = parameters.top_k > 0 && parameters.top_k <= kept ? kept : 0;
        std::size_t count = 0;
        while (count < kept) {
            if (count >= sorted) {
                const std::size_t next = std::min(kept, std::max<std::size_t>(64, sorted * 4));
                std::partial_sort(candidates_.begin() + static_cast<std::ptrdiff_t>(sorted),
                                  candidates_.begin() + static_cast<std::ptrdiff_t>(next),
                                  candidates_.begin() + static_cast<std::ptrdiff_t>(kept),
                                  more_likely);
                sorted = next;
            }
            mass += candidates_[count++].weight;
            if (mass >= parameters.top_p * total) break;
        }
        kept = count;
        total = mass;
    }
    double left = uniform(parameters, position) * total;
    for (std::size_t i = 0; i < kept; ++i) {
        left -= candidates_[i].weight;
        if (left < 0) return candidates_[i].token;
    }
    return candidates_[kept - 1].token;
}

}  // namespace artel::engine
