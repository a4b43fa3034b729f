// SPDX-License-Identifier: Apache-2.0
// The AVX2 kernels that kernels_avx2.cpp puts in the table; contracts are those of kernels.hpp.
#pragma once

#include "backends/cpu/kernels.hpp"

namespace artel::cpu::avx2 {

void round_row(const float* x, std::size_t columns, RoundedPiece* pieces);

void matmul_q4_0(const MatMulTile<RoundedPiece>& tile);
void matmul_q4_1(const MatMulTile<RoundedPiece>& tile);
void matmul_q5_0(const MatMulTile<RoundedPiece>& tile);
void matmul_q5_1(const MatMulTile<RoundedPiece>& tile);
void matmul_q8_0(const MatMulTile<RoundedPiece>& tile);
void matmul_q4_k(const MatMulTile<RoundedPiece>& tile);
void matmul_q5_k(const MatMulTile<RoundedPiece>& tile);
void matmul_q6_k(const MatMulTile<RoundedPiece>& tile);
void matmul_f32(const MatMulTile<float>& tile);
void matmul_f16(const MatMulTile<float>& tile);
void matmul_bf16(const MatMulTile<float>& tile);

void attend_f16(const AttentionBlock& block, const float* query, float* block_vector,
                AttentionState& state);
void attend_f32(const AttentionBlock& block, const float* query, float* block_vector,
                AttentionState& state);

void rms_norm(const float* x, const float* weight, std::size_t width, float epsilon, float* out);
void layer_norm(const float* x, NormVectors vectors, std::size_t width, float epsilon, float* out);
void gelu_erf(const float* x, std::size_t count, float* out);
void silu_gate(const float* gate, const float* up, std::size_t count, float* out);
void gelu_gate(const float* gate, const float* up, std::size_t count, float* out);
void clamped_gate(const float* gate, const float* up, std::size_t count, float* out);
void add_scaled(const float* x, float factor, std::size_t count, float* out);
void add(const float* a, const float* b, std::size_t count, float* out);
void multiply(const float* a, const float* b, std::size_t count, float* out);
void scale(const float* x, float factor, std::size_t count, float* out);
void soft_cap(const float* x, float cap, std::size_t count, float* out);

}  // namespace artel::cpu::avx2
