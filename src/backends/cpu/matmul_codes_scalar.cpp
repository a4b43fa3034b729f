// SPDX-License-Identifier: Apache-2.0
// MatMul over weights packed as codes, in plain C++: the rules of graph/arithmetic.hpp as they
// stand there.
#include <cstring>

#include "backends/cpu/matmul_codes.hpp"
#include "backends/cpu/packed_codes.hpp"
#include "graph/arithmetic.hpp"

namespace artel::cpu::scalar {

namespace {

using graph::fused_multiply_add;

/// One row of one piece, ready for any number of rows of x.
struct RowPiece {
    std::int8_t quants[kPieceColumns];
    int scales[2];  // of the first and of the last 16 columns
    int minima[2];
    float scale[2];  // the same for both, but for NVFP4
    float minimum;
};

template <class P>
RowPiece load_row_piece(const std::byte* block, std::size_t piece, std::size_t row) {
    RowPiece loaded{};
    unpack_codes<P>(block + P::kCodesOffset + piece * P::kPieceBytes, row, loaded.quants);
    const float scale = packed_block_scale<P>(block, row);
    const std::byte* parts = block + P::kPartsOffset + piece * P::kPartBytes;
    for (std::size_t half = 0; half < 2; ++half) {
        loaded.scale[half] = scale;
        loaded.scales[half] = 1;
        if constexpr (P::kParts == PartScales::None) continue;
        const auto byte = static_cast<std::uint8_t>(parts[part_place(P::kHasPartsOf16, half, row)]);
        if constexpr (P::kParts == PartScales::Ue4m3)
            loaded.scale[half] = quant::half_ue4m3_to_f32(byte);
        else if constexpr (P::kHasMinima)
            loaded.scales[half] = byte & 15;
        else
            loaded.scales[half] = static_cast<std::int8_t>(byte);
        loaded.minima[half] = byte >> 4;
    }
    if constexpr (P::kHasMinima) {
        quant::F16Bits bits;
        std::memcpy(&bits, block + P::kMinimumOffset + 2 * row, sizeof(bits));
        loaded.minimum = quant::f16_to_f32(bits);
    }
    return loaded;
}

int dot_of_16(const std::int8_t* weights, const std::int8_t* x) {
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += weights[i] * x[i];
    return sum;
}

template <class P>
void add_piece(const RowPiece& weights, const RoundedPiece& x, float& acc, float& low) {
    const int first = weights.scales[0] * dot_of_16(weights.quants, x.quants);
    const int last = weights.scales[1] * dot_of_16(weights.quants + 16, x.quants + 16);
    if constexpr (P::kParts == PartScales::Ue4m3) {
        acc = fused_multiply_add(static_cast<float>(first), weights.scale[0] * x.scale, acc);
        acc = fused_multiply_add(static_cast<float>(last), weights.scale[1] * x.scale, acc);
    } else {
        acc = fused_multiply_add(static_cast<float>(first + last), weights.scale[0] * x.scale, acc);
    }
    if constexpr (P::kHasMinima) {
        const int sum = weights.minima[0] * x.sums[0] + weights.minima[1] * x.sums[1];
        low = fused_multiply_add(static_cast<float>(sum), -weights.minimum * x.scale, low);
    }
}

template <class F>
void multiply(const MatMulTile<RoundedPiece>& tile) {
    using P = Packed<F>;
    for (std::size_t column = 0; column < tile.groups * kGroupRows; ++column) {
        const std::byte* group = tile.weights + column / kGroupRows * group_bytes<F>(tile.columns);
        float acc[kTileRows] = {};
        float low[kTileRows] = {};
        for (std::size_t at = 0; at < tile.columns / kPieceColumns; ++at) {
            const RowPiece weights = load_row_piece<P>(group + at / P::kPieces * P::kBytes,
                                                       at % P::kPieces, column % kGroupRows);
            for (std::size_t r = 0; r < tile.rows; ++r)
                add_piece<P>(weights, tile.x[r * tile.x_stride + at], acc[r], low[r]);
        }
        for (std::size_t r = 0; r < tile.rows; ++r)
            tile.results[r][column] = P::kHasMinima ? acc[r] + low[r] : acc[r];
    }
}

}  // namespace

const RoundedMatMul kMatMulCodes[] = {
#define ARTEL_CODE_KERNEL(F) multiply<quant::F>,
    ARTEL_CODE_FORMATS(ARTEL_CODE_KERNEL)
#undef ARTEL_CODE_KERNEL
};

}  // namespace artel::cpu::scalar
