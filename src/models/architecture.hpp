// SPDX-License-Identifier: Apache-2.0
// What an architecture is: a name, its settings read from a file, and three functions that record
// ops (graph/graph_builder.hpp): input (tokens -> activations), layer i, and output (activations ->
// logits of the rows that want them). Layers may all differ. A Model is an architecture with the
// settings of one file; nothing outside models/NAME.cpp asks which architecture it is.
// A Model is immutable and holds no weights; its functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "gguf/metadata.hpp"
#include "graph/graph_builder.hpp"
#include "models/config_reader.hpp"

namespace artel::models {

/// What the rest of artel may know of a model.
struct ModelShape {
    std::uint32_t layer_count = 0;
    std::uint32_t width = 0;  // columns of the activations between layers
    std::uint32_t vocabulary_size = 0;
    std::uint32_t context_length = 0;                 // positions that it was trained for
    std::vector<graph::StateGroupSpec> state_groups;  // the same on every stage
};

/// Reads the parts of a shape that all architectures have; state_groups stay empty.
ModelShape read_shape(ConfigReader& reader);

struct Model {
    std::string_view architecture;
    ModelShape shape;
    /// -> (R, width)
    std::function<graph::Tensor(graph::GraphBuilder&)> input;
    /// (R, width) -> (R, width); layer < shape.layer_count
    std::function<graph::Tensor(graph::GraphBuilder&, graph::Tensor, std::uint32_t)> layer;
    /// (R, width) -> (L, vocabulary)
    std::function<graph::Tensor(graph::GraphBuilder&, graph::Tensor)> output;
};

struct Architecture {
    std::string_view name;  // general.architecture
    /// Errors name the key and its value: InvalidArgument, Unimplemented.
    Result<Model> (*open)(const gguf::Metadata& metadata);
};

/// The functions of an architecture whose settings are a Config, which has a `ModelShape shape`.
template <class Config>
struct ArchitectureFunctions {
    std::string_view name;
    Result<Config> (*read_config)(ConfigReader& reader);
    graph::Tensor (*input)(graph::GraphBuilder& g, const Config& config);
    graph::Tensor (*layer)(graph::GraphBuilder& g, const Config& config, graph::Tensor x,
                           std::uint32_t layer);
    graph::Tensor (*output)(graph::GraphBuilder& g, const Config& config, graph::Tensor x);
};

/// Reads the settings once and binds the three functions to them.
template <class Config>
Result<Model> open_with(const ArchitectureFunctions<Config>& functions,
                        const gguf::Metadata& metadata) {
    ConfigReader reader(metadata, functions.name);
    ARTEL_ASSIGN(const Config config, functions.read_config(reader));
    return Model{
        .architecture = functions.name,
        .shape = config.shape,
        .input = [=](graph::GraphBuilder& g) { return functions.input(g, config); },
        .layer = [=](graph::GraphBuilder& g, graph::Tensor x,
                     std::uint32_t layer) { return functions.layer(g, config, x, layer); },
        .output = [=](graph::GraphBuilder& g,
                      graph::Tensor x) { return functions.output(g, config, x); },
    };
}

/// One for each file models/NAME.cpp; the list is in registry.cpp.
Architecture llama_architecture();
Architecture gemma3_architecture();
Architecture qwen2_architecture();
Architecture qwen3_architecture();
Architecture gemma2_architecture();
Architecture phi3_architecture();
Architecture olmo2_architecture();
Architecture falcon_architecture();
Architecture qwen3moe_architecture();
Architecture gpt_oss_architecture();
Architecture glm4moe_architecture();
Architecture deepseek2_architecture();

/// All architectures of this build.
std::span<const Architecture> all_architectures();
/// The model of a file, by its general.architecture. Errors: InvalidArgument (absent or wrong
/// settings), Unimplemented (an architecture this build does not know; the message lists those it
/// does).
Result<Model> open_model(const gguf::Metadata& metadata);

}  // namespace artel::models
