// SPDX-License-Identifier: Apache-2.0
// Attention to one page: in the score loop a lane is a position (all 64 are computed, those that
// are not seen are replaced afterwards), in the value loop a lane is a column.
#include "backends/cpu/kernels_avx2.hpp"
#include "backends/cpu/simd_avx2.hpp"
#include "graph/arithmetic.hpp"

namespace artel::cpu::avx2 {

namespace {

constexpr std::size_t kPositions = 64;
constexpr std::size_t kVectors = kPositions / kLanes;

struct F16State {
    static constexpr std::size_t kBytes = 2;
    ARTEL_KERNEL_INLINE static __m256 load(const std::byte* at) { return load_f16(at); }
    ARTEL_KERNEL_INLINE static float load_one(const std::byte* at) {
        quant::F16Bits half;
        __builtin_memcpy(&half, at, sizeof(half));
        return quant::f16_to_f32(half);
    }
};
struct F32State {
    static constexpr std::size_t kBytes = 4;
    ARTEL_KERNEL_INLINE static __m256 load(const std::byte* at) {
        return _mm256_castsi256_ps(load_bytes(at));
    }
    ARTEL_KERNEL_INLINE static float load_one(const std::byte* at) {
        float value;
        __builtin_memcpy(&value, at, sizeof(value));
        return value;
    }
};

/// scores (64) of all positions; those that are not seen hold anything.
template <class S>
ARTEL_KERNEL_INLINE void score_block(const AttentionBlock& block, const float* query,
                                     float* scores) {
    __m256 dots[kVectors];
    for (auto& dot : dots) dot = _mm256_setzero_ps();
    for (std::size_t k = 0; k < block.key_dim; ++k) {
        const __m256 q = _mm256_broadcast_ss(query + k);
        const std::byte* keys = block.keys + k * kPositions * S::kBytes;
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kVectors; ++v)
            dots[v] = _mm256_fmadd_ps(q, S::load(keys + v * kLanes * S::kBytes), dots[v]);
    }
    const __m256 scale = _mm256_set1_ps(block.scale);
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v)
        _mm256_store_ps(scores + v * kLanes, _mm256_mul_ps(dots[v], scale));
}

/// Scores of seen positions to weights, of others to 0; the sum is returned.
ARTEL_KERNEL_INLINE float weigh(const AttentionBlock& block, float top, float* scores) {
    for (std::size_t j = 0; j < block.first; ++j) scores[j] = -__builtin_inff();
    for (std::size_t j = block.end; j < kPositions; ++j) scores[j] = -__builtin_inff();
    __m256 low = _mm256_setzero_ps();
    __m256 high = _mm256_setzero_ps();
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; v += 2) {
        for (std::size_t half = 0; half < 2; ++half) {
            float* at = scores + (v + half) * kLanes;
            const __m256 weight = exact_exp(_mm256_sub_ps(_mm256_load_ps(at), _mm256_set1_ps(top)));
            _mm256_store_ps(at, weight);
            if (half == 0)
                low = _mm256_add_ps(low, weight);
            else
                high = _mm256_add_ps(high, weight);
        }
    }
    return tree_sum(low, high);
}

/// out (64) = weighted sum of columns [c, c + 64), or of 8 columns.
template <class S, std::size_t Vectors>
ARTEL_KERNEL_INLINE void sum_columns(const AttentionBlock& block, const float* weights,
                                     std::size_t c, float* vector) {
    __m256 sums[Vectors];
    for (auto& sum : sums) sum = _mm256_setzero_ps();
    for (std::size_t j = block.first; j < block.end; ++j) {
        const __m256 weight = _mm256_broadcast_ss(weights + j);
        const std::byte* values = block.values + (j * block.value_dim + c) * S::kBytes;
#pragma GCC unroll 8
        for (std::size_t v = 0; v < Vectors; ++v)
            sums[v] = _mm256_fmadd_ps(weight, S::load(values + v * kLanes * S::kBytes), sums[v]);
    }
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v) _mm256_storeu_ps(vector + c + v * kLanes, sums[v]);
}

template <class S>
ARTEL_KERNEL_INLINE void sum_values(const AttentionBlock& block, const float* weights,
                                    float* vector) {
    std::size_t c = 0;
    for (; c + 64 <= block.value_dim; c += 64) sum_columns<S, 8>(block, weights, c, vector);
    for (; c + kLanes <= block.value_dim; c += kLanes) sum_columns<S, 1>(block, weights, c, vector);
    for (; c < block.value_dim; ++c) {
        float sum = 0;
        for (std::size_t j = block.first; j < block.end; ++j)
            sum = graph::fused_multiply_add(
                weights[j], S::load_one(block.values + (j * block.value_dim + c) * S::kBytes), sum);
        vector[c] = sum;
    }
}

/// state.vector = vector * b + state.vector * a.
ARTEL_KERNEL_INLINE void merge_vectors(const float* vector, float a, float b, std::size_t count,
                                       float* merged) {
    std::size_t c = 0;
    for (; c + kLanes <= count; c += kLanes) {
        const __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(merged + c), _mm256_set1_ps(a));
        _mm256_storeu_ps(merged + c,
                         _mm256_fmadd_ps(_mm256_loadu_ps(vector + c), _mm256_set1_ps(b), kept));
    }
    for (; c < count; ++c) merged[c] = graph::fused_multiply_add(vector[c], b, merged[c] * a);
}

template <class S>
ARTEL_KERNEL_INLINE void attend(const AttentionBlock& block, const float* query,
                                float* block_vector, AttentionState& state) {
    alignas(32) float scores[kPositions];
    score_block<S>(block, query, scores);
    if (block.softcap != 0)
        for (std::size_t j = block.first; j < block.end; ++j)
            scores[j] = graph::soft_cap(scores[j], block.softcap);
    float top = scores[block.first];
    for (std::size_t j = block.first + 1; j < block.end; ++j)
        top = scores[j] > top ? scores[j] : top;
    const float sum = weigh(block, top, scores);
    float* vector = state.is_empty ? state.vector : block_vector;
    sum_values<S>(block, scores, vector);
    if (state.is_empty) {
        state.top = top;
        state.sum = sum;
        state.is_empty = false;
        return;
    }
    const float merged = top > state.top ? top : state.top;
    const float a = graph::exact_exp(state.top - merged);
    const float b = graph::exact_exp(top - merged);
    state.sum = graph::fused_multiply_add(sum, b, state.sum * a);
    merge_vectors(vector, a, b, block.value_dim, state.vector);
    state.top = merged;
}

}  // namespace

void attend_f16(const AttentionBlock& block, const float* query, float* block_vector,
                AttentionState& state) {
    attend<F16State>(block, query, block_vector, state);
}
void attend_f32(const AttentionBlock& block, const float* query, float* block_vector,
                AttentionState& state) {
    attend<F32State>(block, query, block_vector, state);
}

}  // namespace artel::cpu::avx2
