// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the CPU class, to the last bit: every CPU path (scalar, AVX2, one row or many,
// any number of threads) gives the bytes that these rules give. docs/decisions/0004-arithmetic.md
// says why; here is what. fma() is one rounding; every other operation below is one float32
// operation with its own rounding, in the order written. Vector code mirrors the scalar functions
// operation by operation. The reference backend sums in double instead and is compared within a
// tolerance; it shares the rope angles and the roundings of activations and state.
//
// MatMul, integer formats (Activations::I8x32). Per output, blocks b of 32 columns ascending:
//     d[b], q[b][32]   scale and quants of the activations (activation_rounding.hpp)
//     acc = fma(float(dot), scale * d[b], acc)           both accumulators begin at +0
//     low = fma(float(sum), offset * d[b], low)          only formats with an offset
//     result = acc, or acc + low
//   where dot and sum are exact int32, and w are the whole numbers of the format's unpack():
//     Q4_0 Q5_0 Q8_0  dot = sum(w * q)                      scale = block scale
//     Q4_1 Q5_1       as above; sum = sum(q)                offset = block minimum
//     Q4_K Q5_K       dot = scales[part] * sum(w * q)       scale = superblock scale
//                     sum = minima[part] * sum(q)           offset = -superblock minimum
//     Q6_K            dot = scales[2b] * sum(w * q, first 16 of b)
//                         + scales[2b+1] * sum(w * q, last 16 of b); scale = superblock scale
//     Others          dot = sum over halves h (16 columns) of scales[part of h] * sum(w * q, h)
//                     scale = block_scale(); scales are 1 where a block has no parts
//                     Q2_K: sum = sum over halves of minima[part of h] * sum(q, h)
//                     offset = -block_minimum()            (quant/parts.hpp names all of these)
//     NVFP4           one fma for each half: acc = fma(float(dot of h), scale of h * d[b], acc)
//   (b counts within the superblock there.) |dot| < 2^24 always, so float(dot) is exact; IQ4_XS
//   comes nearest: 32 columns * 127 * 127 * 32.
//   f16 scales become float32 exactly; `scale * d[b]` and `offset * d[b]` are rounded once.
// MatMul, float formats (Activations::F32). Per output, columns k ascending:
//     acc = fma(x[k], float(w[k]), acc), from +0.
// Both: then result * scale where the op has one, then + bias where it has one.
//
// EmbedRows   decode(w) * scale.
// RmsNorm     partial[i % 16] = fma(x[i], x[i], partial[i % 16]) for i ascending, from +0;
//             r = 1 / sqrt(tree_sum(partial) / float(width) + epsilon); out = (x * r) * weight.
// LayerNorm   mean = tree_sum(partial) / float(width), partial[i % 16] += x[i]; d[i] = x[i] - mean;
//             partial[i % 16] = fma(d[i], d[i], partial[i % 16]), from +0 both;
//             r = 1 / sqrt(tree_sum(partial) / float(width) + epsilon);
//             out = (d[i] * r) * weight, then + bias where there is one.
// Rope        c, s of rope_rotation() (rope_angles.hpp), the pair (a, b) becomes
//             fma(a, c, -(b * s)) and fma(a, s, b * c).
// Attention   per row and head; blocks of 64 positions at multiples of 64, ascending, only those
//             that the row sees; within a block, over those positions j ascending:
//               score[j]  = dot * op.scale, dot = fma(query[k], key[j][k], dot), k ascending,
//                           from +0 (then softcap * tanh(score / softcap) where there is a softcap)
//               top       = max score
//               weight[j] = exp(score[j] - top); an unseen j has weight 0
//               sum       = tree_sum(partial), partial[j % 16] += weight[j], from +0
//               vector[c] = fma(weight[j], value[j][c], vector[c]), from +0, seen j only
//             the first block is the running (Top, Sum, Vector); each later one is merged:
//               new = max(Top, top); a = exp(Top - new); b = exp(top - new)
//               Sum = fma(sum, b, Sum * a); Vector[c] = fma(vector[c], b, Vector[c] * a); Top = new
//             out[c] = Vector[c] * (1 / Sum); with a sink s: new = max(Top, s);
//             a = exp(Top - new); out[c] = Vector[c] * (a / fma(Sum, a, exp(s - new))).
//             max(a, b) is b > a ? b : a. State is rounded to its type once, by StoreState
//             (f16: to nearest even, quant/half.hpp), and read back exactly.
// GatedActivation  silu(gate) * up, gelu_tanh(gate) * up.   SoftCap  cap * tanh(x / cap).
//             clamped_swish(gate, up).
// Activate    gelu_erf(x).
// HeadMatMul  each head as a MatMul. SliceHeads, JoinHeads  copies.
// RoutedExperts  per row; experts and weights by routing.hpp:
//             softmax    top = max; e[i] = exp(x[i] - top); e[i] / tree_sum(partial),
//                        partial[i % 16] += e[i], from +0; i counts experts, or chosen ones
//             sigmoid    1 / (1 + exp(-x));   choice = score + selection bias
//             then, experts ascending: weight / sum where it normalises (sum += weight, from +0),
//             * scale. out = fma(y, weight, out) over chosen experts ascending, from +0, where
//             y = down(f(gate, up)) of the expert, each as a MatMul with its bias.
// Add, Multiply, Scale  one operation each.
#pragma once

#include <cmath>
#include <cstdint>

#include "quant/half.hpp"

namespace artel::graph {

/// a * b + c with one rounding, on any CPU. Without the instruction: the product is exact in
/// double; the sum is rounded to odd there, which makes the second rounding, to float, the right
/// one (Boldo, Melquiond 2008, "Emulation of FMA and correctly rounded sums").
ARTEL_KERNEL_INLINE float fused_multiply_add(float a, float b, float c) {
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = static_cast<double>(c);
    double sum = product + addend;
    // What the sum lost, exactly (Knuth's two-sum).
    const double part = sum - product;
    const double lost = (product - (sum - part)) + (addend - part);
    // One unit towards what was lost, where sum is even: without branches, which nothing could
    // predict. Both comparisons are false where an infinity or a NaN made `lost` a NaN.
    const auto bits = __builtin_bit_cast(std::int64_t, sum);
    const std::int64_t is_even = ~bits & (std::int64_t{lost < 0} | std::int64_t{lost > 0});
    const std::int64_t step = 1 - 2 * std::int64_t{(lost < 0) != (sum < 0)};
    sum = __builtin_bit_cast(double, bits + (step & -is_even));
    return static_cast<float>(sum);
#endif
}

/// The sum of 16 partial sums: halves are added to each other, 16, 8, 4, 2, 1.
ARTEL_KERNEL_INLINE float tree_sum(const float* partial) {
    float sums[8];
    for (int i = 0; i < 8; ++i) sums[i] = partial[i] + partial[i + 8];
    for (int i = 0; i < 4; ++i) sums[i] = sums[i] + sums[i + 4];
    for (int i = 0; i < 2; ++i) sums[i] = sums[i] + sums[i + 2];
    return sums[0] + sums[1];
}

/// e^x. Error at most 1.5 units in the last place for -87 <= x <= 88 (measured in the test). Below
/// -87 it is 0, above 88 it is e^88; NaN stays NaN. exp(0) is exactly 1.
///   x = n ln 2 + r, |r| <= ln 2 / 2; e^x = 2^n e^r, with the Taylor series of e^r to r^7.
ARTEL_KERNEL_INLINE float exact_exp(float x) {
    constexpr float kLow = -87.0F;
    constexpr float kHigh = 88.0F;
    constexpr float kMagic = 0x1.8p23F;
    constexpr float kLog2E = 0x1.715476p0F;
    constexpr float kLn2High = 0x1.62e4p-1F;  // 15 bits: n * kLn2High is exact
    constexpr float kLn2Low = 0x1.7f7d1cp-20F;
    const float clamped = kHigh < x ? kHigh : x;  // _mm256_min_ps(kHigh, x): NaN stays
    const float shifted = fused_multiply_add(clamped, kLog2E, kMagic);
    const float n = shifted - kMagic;
    float r = fused_multiply_add(-n, kLn2High, clamped);
    r = fused_multiply_add(-n, kLn2Low, r);
    float p = 0x1.a01a02p-13F;                      // 1 / 7!
    p = fused_multiply_add(p, r, 0x1.6c16c2p-10F);  // 1 / 6!
    p = fused_multiply_add(p, r, 0x1.111112p-7F);   // 1 / 5!
    p = fused_multiply_add(p, r, 0x1.555556p-5F);   // 1 / 4!
    p = fused_multiply_add(p, r, 0x1.555556p-3F);   // 1 / 3!
    p = fused_multiply_add(p, r, 0.5F);
    p = fused_multiply_add(p, r, 1.0F);
    p = fused_multiply_add(p, r, 1.0F);
    // 2^n from the bits of `shifted`, whose last bits are n.
    const std::uint32_t exponent = __builtin_bit_cast(std::uint32_t, shifted) -
                                   __builtin_bit_cast(std::uint32_t, kMagic) + 127U;
    const float power = __builtin_bit_cast(float, exponent << 23);
    return x < kLow ? 0.0F : p * power;
}

/// tanh x, within 2 units in the last place (measured in the test). NaN stays NaN.
///   |x| < 0.625: x + x^3 P(x^2), P from Cephes' tanhf; else 1 - 2 / (e^(2|x|) + 1), with x's sign.
ARTEL_KERNEL_INLINE float exact_tanh(float x) {
    const float magnitude = __builtin_fabsf(x);
    const float z = x * x;
    float p = -5.70498872745E-3F;
    p = fused_multiply_add(p, z, 2.06390887954E-2F);
    p = fused_multiply_add(p, z, -5.37397155531E-2F);
    p = fused_multiply_add(p, z, 1.33314422036E-1F);
    p = fused_multiply_add(p, z, -3.33332819422E-1F);
    const float small = fused_multiply_add(p * z, x, x);
    const float large = 1.0F - 2.0F / (exact_exp(magnitude + magnitude) + 1.0F);
    return magnitude < 0.625F ? small : __builtin_copysignf(large, x);
}

/// x / (1 + e^-x).
ARTEL_KERNEL_INLINE float silu(float x) {
    return x / (1.0F + exact_exp(-x));
}

/// 0.5 x (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3): the second form has
/// no cancellation. -2u = x * (kA + kB x^2).
ARTEL_KERNEL_INLINE float gelu_tanh(float x) {
    constexpr float kA = -0x1.988454p0F;   // -2 sqrt(2 / pi)
    constexpr float kB = -0x1.2444f2p-4F;  // 0.044715 kA
    const float exponent = x * fused_multiply_add(kB, x * x, kA);
    return x / (1.0F + exact_exp(exponent));
}

/// x P(x), P the normal distribution's cumulative function, with an absolute error of P below 2e-7:
/// erfc(z) = e^(-z^2) t (a1 + t (a2 + ...)), t = 1 / (1 + p z) for z >= 0, Abramowitz and Stegun
/// (1964), 7.1.26. P(x) = 1 - erfc(x / sqrt 2) / 2, and by symmetry for x < 0.
ARTEL_KERNEL_INLINE float gelu_erf(float x) {
    const float z = __builtin_fabsf(x) * 0x1.6a09e6p-1F;  // / sqrt(2)
    const float t = 1.0F / fused_multiply_add(0.3275911F, z, 1.0F);
    float p = 1.061405429F;
    p = fused_multiply_add(p, t, -1.453152027F);
    p = fused_multiply_add(p, t, 1.421413741F);
    p = fused_multiply_add(p, t, -0.284496736F);
    p = fused_multiply_add(p, t, 0.254829592F);
    const float tail = 0.5F * ((p * t) * exact_exp(-(z * z)));
    return x * (x < 0.0F ? tail : 1.0F - tail);
}

/// min(gate, 7) * sigmoid(1.702 * that) * (clamp(up, -7, 7) + 1): the gate of gpt-oss.
ARTEL_KERNEL_INLINE float clamped_swish(float gate, float up) {
    constexpr float kLimit = 7.0F;
    constexpr float kAlpha = 1.702F;
    const float g = gate > kLimit ? kLimit : gate;
    const float low = up > kLimit ? kLimit : up;
    const float u = low < -kLimit ? -kLimit : low;
    const float swish = g / (1.0F + exact_exp(-(kAlpha * g)));
    return (u + 1.0F) * swish;
}

/// cap * tanh(x / cap).
ARTEL_KERNEL_INLINE float soft_cap(float x, float cap) {
    return cap * exact_tanh(x / cap);
}

}  // namespace artel::graph
