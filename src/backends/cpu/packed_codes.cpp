// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/packed_codes.hpp"

#include <array>
#include <cstring>

#include "backends/cpu/packed_code_rows.hpp"

namespace artel::cpu {

namespace {

/// The code of each whole number (as an unsigned byte).
template <class F>
constexpr std::array<std::uint8_t, 256> codes_of_quants() {
    std::array<std::uint8_t, 256> codes{};
    for (int code = Packed<F>::kCodes - 1; code >= 0; --code)
        codes[static_cast<std::uint8_t>(Packed<F>::value(code))] = static_cast<std::uint8_t>(code);
    return codes;
}

/// 32 whole numbers of a row into its places of a piece.
template <class F>
void pack_piece(const std::int8_t* quants, std::size_t row, std::byte* piece) {
    using P = Packed<F>;
    static constexpr auto kCodes = codes_of_quants<F>();
    std::byte* lane = piece + 4 * row;
    for (int run = 0; run < 8; ++run)
        for (int j = 0; j < 4; ++j) {
            const auto quant = static_cast<std::uint8_t>(quants[4 * run + j]);
            const int code = kCodes[quant];
            if constexpr (P::kBits == 8) {
                lane[32 * run + j] = static_cast<std::byte>(quant);
            } else if constexpr (P::kBits == 4) {
                set_bits(lane[run / 2 * 32 + j], 15, code, run % 2 * 4);
            } else {
                set_bits(lane[run / 4 * 32 + j], 3, code & 3, run % 4 * 2);
                if constexpr (P::kBits == 3) set_bits(lane[64 + j], 1, code >> 2, run);
            }
        }
}

template <class F>
void pack_block_scale(const typename F::Block& block, std::size_t row, std::byte* packed) {
    constexpr BlockScale kScale = Packed<F>::kLayout.scale;
    if constexpr (kScale == BlockScale::E8M0) {
        packed[row] = static_cast<std::byte>(block.exponent);
    } else if constexpr (requires { F::scale_bits(block); }) {
        const quant::F16Bits bits = F::scale_bits(block);
        std::memcpy(packed + sizeof(bits) * row, &bits, sizeof(bits));
    } else if constexpr (kScale != BlockScale::None) {
        std::memcpy(packed + sizeof(block.scale) * row, &block.scale, sizeof(block.scale));
    }
}

/// The part scales of a block, one byte each as they lie in memory here.
template <class F>
void packed_part_scales(const typename F::Block& block, std::uint8_t* scales) {
    using P = Packed<F>;
    if constexpr (P::kParts == PartScales::Ue4m3) {
        // 0x7F counts as zero (quant/nvfp4.hpp): kernels need not look for it.
        for (int part = 0; part < 4; ++part) {
            const std::uint8_t scale = block.part_scales[part];
            scales[part] = scale == 0x7F ? std::uint8_t{0} : scale;
        }
    } else if constexpr (P::kHasMinima) {
        std::memcpy(scales, block.parts, sizeof(block.parts));
    } else if constexpr (P::kParts != PartScales::None) {
        F::unpack_part_scales(block, reinterpret_cast<std::int8_t*>(scales));
    }
}

template <class F>
void pack_block(const typename F::Block& block, std::size_t row, std::byte* packed) {
    using P = Packed<F>;
    pack_block_scale<F>(block, row, packed);
    if constexpr (P::kHasMinima)
        std::memcpy(packed + P::kMinimumOffset + 2 * row, &block.minimum, 2);
    std::uint8_t scales[2 * P::kPieces];
    packed_part_scales<F>(block, scales);
    std::int8_t quants[P::kElements];
    F::unpack(block, quants);
    constexpr std::size_t kPieceParts = P::kHasPartsOf16 ? 2 : 1;
    for (std::size_t piece = 0; piece < P::kPieces; ++piece) {
        std::byte* parts = packed + P::kPartsOffset + piece * P::kPartBytes;
        if constexpr (P::kParts != PartScales::None)
            for (std::size_t half = 0; half < kPieceParts; ++half)
                parts[part_place(P::kHasPartsOf16, half, row)] =
                    static_cast<std::byte>(scales[piece * kPieceParts + half]);
        pack_piece<F>(quants + piece * kPieceColumns, row,
                      packed + P::kCodesOffset + piece * P::kPieceBytes);
    }
}

/// The scale of the 16 columns of part `half` of a piece.
template <class P>
float part_scale(const std::byte* packed, std::size_t piece, std::size_t half, std::size_t row) {
    const float scale = packed_block_scale<P>(packed, row);
    if constexpr (P::kParts == PartScales::None) return scale;
    const std::byte* parts = packed + P::kPartsOffset + piece * P::kPartBytes;
    const auto byte = static_cast<std::uint8_t>(parts[part_place(P::kHasPartsOf16, half, row)]);
    if constexpr (P::kParts == PartScales::Ue4m3) return quant::half_ue4m3_to_f32(byte);
    if constexpr (P::kHasMinima) return scale * static_cast<float>(byte & 15);
    return scale * static_cast<float>(static_cast<std::int8_t>(byte));
}

/// The operations of quant::decode_parts, in its order.
template <class F>
void decode_block(const std::byte* packed, std::size_t row, float* floats) {
    using P = Packed<F>;
    for (std::size_t piece = 0; piece < P::kPieces; ++piece) {
        std::int8_t quants[kPieceColumns];
        unpack_codes<P>(packed + P::kCodesOffset + piece * P::kPieceBytes, row, quants);
        for (std::size_t i = 0; i < kPieceColumns; ++i) {
            float& out = floats[piece * kPieceColumns + i];
            out = part_scale<P>(packed, piece, i / 16, row) * static_cast<float>(quants[i]);
            if constexpr (P::kHasMinima) {
                quant::F16Bits bits;
                std::memcpy(&bits, packed + P::kMinimumOffset + 2 * row, sizeof(bits));
                const std::byte* parts = packed + P::kPartsOffset + piece * P::kPartBytes;
                const int minimum = std::to_integer<int>(parts[part_place(true, i / 16, row)]) >> 4;
                out -= quant::f16_to_f32(bits) * static_cast<float>(minimum);
            }
        }
    }
}

}  // namespace

template <class F>
void pack_code_row(const std::byte* source, std::size_t lane, std::size_t columns,
                   std::byte* group) {
    for (std::size_t b = 0; b < columns / F::kBlockElements; ++b)
        pack_block<F>(quant::load_block<F>(source, b), lane, group + b * Packed<F>::kBytes);
}

template <class F>
void decode_code_row(const std::byte* group, std::size_t lane, std::size_t columns, float* floats) {
    for (std::size_t b = 0; b < columns / F::kBlockElements; ++b)
        decode_block<F>(group + b * Packed<F>::kBytes, lane, floats + b * F::kBlockElements);
}

#define ARTEL_CODE_ROWS(F)                                                                         \
    template void pack_code_row<quant::F>(const std::byte*, std::size_t, std::size_t, std::byte*); \
    template void decode_code_row<quant::F>(const std::byte*, std::size_t, std::size_t, float*);
ARTEL_CODE_FORMATS(ARTEL_CODE_ROWS)
#undef ARTEL_CODE_ROWS

}  // namespace artel::cpu
