// SPDX-License-Identifier: Apache-2.0
// THE list of architectures: a new one is its own file and one line here.
#include <array>

#include "models/architecture.hpp"

namespace artel::models {

std::span<const Architecture> all_architectures() {
    // clang-format off
    static const std::array architectures{
        llama_architecture(),
        gemma3_architecture(),
        qwen2_architecture(),
        qwen3_architecture(),
        gemma2_architecture(),
        phi3_architecture(),
        olmo2_architecture(),
        falcon_architecture(),
        qwen3moe_architecture(),
        gpt_oss_architecture(),
        glm4moe_architecture(),
        deepseek2_architecture(),
    };
    // clang-format on
    return architectures;
}

ModelShape read_shape(ConfigReader& reader) {
    return {
        .layer_count = reader.count("block_count"),
        .width = reader.count("embedding_length"),
        .vocabulary_size = reader.vocabulary_size(),
        .context_length = reader.count("context_length"),
        .state_groups = {},
    };
}

Result<Model> open_model(const gguf::Metadata& metadata) {
    ARTEL_ASSIGN(const auto name, metadata.get<std::string_view>("general.architecture"));
    std::string known;
    for (const Architecture& architecture : all_architectures()) {
        if (architecture.name == name) return architecture.open(metadata);
        if (!known.empty()) known += ", ";
        known += architecture.name;
    }
    return unimplemented(
        "general.architecture is \"{}\", which this build does not know; it knows {}",
        name.substr(0, 64), known);
}

}  // namespace artel::models
