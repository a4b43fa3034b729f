// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels_avx2.hpp"

#include "backends/cpu/matmul_codes.hpp"

namespace artel::cpu::avx2 {

const Kernels kKernels = {
    .isa = Isa::Avx2,
    .round_row = round_row,
    .matmul = {.q4_0 = matmul_q4_0,
               .q4_1 = matmul_q4_1,
               .q5_0 = matmul_q5_0,
               .q5_1 = matmul_q5_1,
               .q8_0 = matmul_q8_0,
               .q4_k = matmul_q4_k,
               .q5_k = matmul_q5_k,
               .q6_k = matmul_q6_k,
               .f32 = matmul_f32,
               .f16 = matmul_f16,
               .bf16 = matmul_bf16,
               .codes = kMatMulCodes},
    .attend_f16 = attend_f16,
    .attend_f32 = attend_f32,
    .scale = scale,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .gelu_erf = gelu_erf,
    .silu_gate = silu_gate,
    .gelu_gate = gelu_gate,
    .clamped_gate = clamped_gate,
    .add_scaled = add_scaled,
    .add = add,
    .multiply = multiply,
    .soft_cap = soft_cap,
};

}  // namespace artel::cpu::avx2
