// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/packed_weights.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cpu/packed_code_rows.hpp"
#include "backends/cpu/packed_codes.hpp"
#include "backends/cpu/packed_format.hpp"

namespace artel::cpu {

namespace {

using quant::load_block;

template <class T>
void store(std::byte* target, std::size_t index, T value) {
    std::memcpy(target + index * sizeof(T), &value, sizeof(T));
}

template <class T>
T load(const std::byte* source, std::size_t index) {
    T value;
    std::memcpy(&value, source + index * sizeof(T), sizeof(T));
    return value;
}

/// Where the quant of (row, column) of a piece lies: byte and shift of its low four (or all) bits,
/// byte and shift of the upper ones.
template <int Bits>
struct QuantPlace {
    std::size_t low_byte, high_byte;
    int low_shift, high_shift;

    QuantPlace(int row, int column) {
        const int run = column / 4;
        const int lane = 4 * row + column % 4;
        low_byte = static_cast<std::size_t>(kRegisterBytes * (Bits == 8 ? run : run / 2) + lane);
        low_shift = Bits == 8 ? 0 : 4 * (run % 2);
        const int high_register = Bits == 6 ? run / 4 : 0;
        high_byte = static_cast<std::size_t>(kRegisterBytes * (4 + high_register) + lane);
        high_shift = Bits == 6 ? 2 * (run % 4) : run;
    }
};

/// `quants`: 32 unsigned whole numbers of one row (signed bytes as they are where Bits is 8).
template <int Bits>
void scatter_piece(const std::int8_t* quants, int row, std::byte* piece) {
    for (int column = 0; column < kPieceColumns; ++column) {
        const QuantPlace<Bits> place(row, column);
        const auto value = static_cast<std::uint8_t>(quants[column]);
        const int low = Bits == 8 ? value : value & 0x0F;
        set_bits(piece[place.low_byte], Bits == 8 ? 0xFF : 0x0F, low, place.low_shift);
        if constexpr (Bits == 5 || Bits == 6)
            set_bits(piece[place.high_byte], Bits == 5 ? 1 : 3, value >> 4, place.high_shift);
    }
}

template <int Bits>
void gather_piece(const std::byte* piece, int row, std::int8_t* quants) {
    for (int column = 0; column < kPieceColumns; ++column) {
        const QuantPlace<Bits> place(row, column);
        const int low = std::to_integer<int>(piece[place.low_byte]);
        int value = Bits == 8 ? low : low >> place.low_shift & 0x0F;
        if constexpr (Bits == 5 || Bits == 6) {
            const int high = std::to_integer<int>(piece[place.high_byte]) >> place.high_shift;
            value |= (high & (Bits == 5 ? 1 : 3)) << 4;
        }
        quants[column] = static_cast<std::int8_t>(value);
    }
}

template <class F>
void pack_block(const typename F::Block& block, int row, std::byte* target) {
    using P = Packed<F>;
    const auto lane = static_cast<std::size_t>(row);
    store(target, lane, block.scale);
    if constexpr (P::kHasMinimum) store(target + P::kMinimumOffset, lane, block.minimum);
    std::byte* sub_scales = target + P::kSubScalesOffset;
    if constexpr (P::kSubScales == SubScales::PartsOf32) {
        std::uint8_t scales[8];
        std::uint8_t minima[8];
        F::unpack_scales(block, scales, minima);
        for (std::size_t part = 0; part < 8; ++part) {
            store(sub_scales, part * 16 + lane, scales[part]);
            store(sub_scales, part * 16 + 8 + lane, minima[part]);
        }
    }
    if constexpr (P::kSubScales == SubScales::PartsOf16)
        for (std::size_t part = 0; part < 16; ++part)
            store(sub_scales, part * 8 + lane, block.scales[part]);
    std::int8_t quants[P::kElements];
    F::unpack(block, quants);
    for (std::int8_t& quant : quants) quant = static_cast<std::int8_t>(quant + P::kOffset);
    for (int piece = 0; piece < P::kPieces; ++piece)
        scatter_piece<P::kBits>(quants + kPieceColumns * piece, row,
                                target + P::kQuantsOffset + P::kPieceBytes * piece);
}

/// The formulas of F::decode, with the operations in the same order.
template <class F>
void decode_packed_block(const std::byte* packed, std::size_t row, float* floats) {
    using P = Packed<F>;
    const float scale = quant::f16_to_f32(load<quant::F16Bits>(packed, row));
    const std::byte* sub_scales = packed + P::kSubScalesOffset;
    std::int8_t quants[P::kElements];
    for (int piece = 0; piece < P::kPieces; ++piece)
        gather_piece<P::kBits>(packed + P::kQuantsOffset + P::kPieceBytes * piece,
                               static_cast<int>(row), quants + kPieceColumns * piece);
    float minimum = 0;
    if constexpr (P::kHasMinimum)
        minimum = quant::f16_to_f32(load<quant::F16Bits>(packed + P::kMinimumOffset, row));
    for (std::size_t i = 0; i < P::kElements; ++i) {
        const auto value = static_cast<float>(quants[i] - P::kOffset);
        if constexpr (P::kSubScales == SubScales::PartsOf32) {
            const std::size_t at = i / 32 * 16 + row;
            const auto part_scale = static_cast<float>(load<std::uint8_t>(sub_scales, at));
            const auto part_minimum = static_cast<float>(load<std::uint8_t>(sub_scales, at + 8));
            floats[i] = scale * part_scale * value - minimum * part_minimum;
        } else if constexpr (P::kSubScales == SubScales::PartsOf16) {
            const std::size_t at = i / 16 * 8 + row;
            floats[i] = scale * static_cast<float>(load<std::int8_t>(sub_scales, at)) * value;
        } else if constexpr (P::kHasMinimum) {
            floats[i] = value * scale + minimum;
        } else {
            floats[i] = value * scale;
        }
    }
}

}  // namespace

std::size_t packed_bytes(quant::FormatId format, std::size_t rows, std::size_t columns) {
    const std::size_t groups = (rows + kGroupRows - 1) / kGroupRows;
    return quant::with_format(format, [&]<class F>() { return groups * group_bytes<F>(columns); });
}

void pack_row(quant::FormatId format, const std::byte* source, std::size_t row, std::size_t columns,
              std::byte* packed) {
    quant::with_format(format, [&]<class F>() {
        std::byte* group = packed + row / kGroupRows * group_bytes<F>(columns);
        const std::size_t lane = row % kGroupRows;
        if constexpr (kIsPackedAsCodes<F>) return pack_code_row<F>(source, lane, columns, group);
        for (std::size_t b = 0; b < columns / F::kBlockElements; ++b) {
            const auto block = load_block<F>(source, b);
            if constexpr (kIsPackedAsCodes<F>)
                continue;
            else if constexpr (Packed<F>::kIsInteger)
                pack_block<F>(block, static_cast<int>(lane), group + b * Packed<F>::kBytes);
            else
                store(group, b * kGroupRows + lane, block);
        }
    });
}

void decode_packed_row(quant::FormatId format, const std::byte* packed, std::size_t row,
                       std::size_t columns, float* floats) {
    quant::with_format(format, [&]<class F>() {
        const std::byte* group = packed + row / kGroupRows * group_bytes<F>(columns);
        const std::size_t lane = row % kGroupRows;
        if constexpr (kIsPackedAsCodes<F>) {
            decode_code_row<F>(group, lane, columns, floats);
        } else if constexpr (Packed<F>::kIsInteger) {
            for (std::size_t b = 0; b < columns / F::kBlockElements; ++b)
                decode_packed_block<F>(group + b * Packed<F>::kBytes, lane,
                                       floats + b * F::kBlockElements);
        } else {
            for (std::size_t k = 0; k < columns; ++k)
                F::decode(load_block<F>(group, k * kGroupRows + lane), floats + k);
        }
    });
}

}  // namespace artel::cpu
