// SPDX-License-Identifier: Apache-2.0
#include "quant/type_names.hpp"

#include <fmt/core.h>

namespace artel::quant {

namespace {

constexpr TypeName kTypeNames[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {4, "Q4_2", 0, 0},        {5, "Q4_3", 0, 0},
    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},
    {9, "Q8_1", 32, 36},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},         {25, "I16", 1, 2},        {26, "I32", 1, 4},
    {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {31, "Q4_0_4_4", 0, 0},   {32, "Q4_0_4_8", 0, 0},
    {33, "Q4_0_8_8", 0, 0},   {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},
    {36, "IQ4_NL_4_4", 0, 0}, {37, "IQ4_NL_4_8", 0, 0}, {38, "IQ4_NL_8_8", 0, 0},
    {39, "MXFP4", 32, 17},    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},
    {42, "Q2_0", 64, 18},
};

}  // namespace

std::span<const TypeName> all_type_names() {
    return kTypeNames;
}

const TypeName* find_type_name(std::uint32_t gguf_id) {
    for (const TypeName& type : kTypeNames)
        if (type.gguf_id == gguf_id) return &type;
    return nullptr;
}

std::string describe_type(std::uint32_t gguf_id) {
    const TypeName* type = find_type_name(gguf_id);
    if (type == nullptr) return fmt::format("unknown type {}", gguf_id);
    if (type->is_removed()) return fmt::format("{} (removed from GGUF)", type->name);
    return std::string(type->name);
}

Result<BlockSize> block_size_of(std::uint32_t gguf_id) {
    const TypeName* type = find_type_name(gguf_id);
    if (type == nullptr)
        return invalid_argument("type {} is not a tensor type that this build knows", gguf_id);
    if (type->is_removed())
        return invalid_argument(
            "type {} is {}, which was removed from GGUF; convert the model again", gguf_id,
            type->name);
    return BlockSize{type->block_elements, type->block_bytes};
}

}  // namespace artel::quant
