// SPDX-License-Identifier: Apache-2.0
// artel inspect MODEL.gguf [--json] [--dump TENSOR OUT.f32]
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/byte_count.hpp"
#include "cli/commands.hpp"
#include "cli/float_file.hpp"
#include "cli/model_report.hpp"
#include "cli/model_text.hpp"
#include "gguf/gguf_index.hpp"
#include "gguf/tensor_reader.hpp"
#include "quant/formats.hpp"
#include "quant/type_names.hpp"

namespace artel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kArrayElementsShown = 8;
constexpr std::size_t kTextBytesShown = 100;
constexpr std::uint64_t kPieceBytes = 1 << 20;

struct InspectCommand {
    std::string model;
    bool wants_json = false;
    std::vector<std::string> dump;  // tensor, path
};

// ---- JSON

Json element_json(const gguf::Value::Element& element) {
    return std::visit(
        [](const auto& value) -> Json {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::string_view>)
                return std::string(value);
            else if constexpr (std::is_same_v<T, float>)  // as short as the float needs
                return std::isfinite(value) ? Json(std::stod(fmt::format("{}", value))) : Json();
            else
                return value;
        },
        element);
}

Json value_json(const gguf::Value& value) {
    Json json;
    if (!value.is_array()) {
        json["type"] = gguf::type_name(value.element_type());
        json["value"] = element_json(value.element(0));
        return json;
    }
    json["type"] = "array";
    json["element_type"] = gguf::type_name(value.element_type());
    json["count"] = value.count();
    json["first"] = Json::array();
    for (std::size_t i = 0; i < std::min(value.count(), kArrayElementsShown); ++i)
        json["first"].push_back(element_json(value.element(i)));
    return json;
}

std::vector<std::uint64_t> dims_of(const gguf::TensorInfo& tensor) {
    return {tensor.dims.begin(), tensor.dims.begin() + tensor.rank};
}

Json tensor_json(const gguf::TensorInfo& tensor) {
    return {{"name", tensor.name},
            {"dims", dims_of(tensor)},
            {"format", quant::describe_type(tensor.type_id)},
            {"bytes", tensor.bytes},
            {"part", tensor.shard + 1},
            {"offset", tensor.offset}};
}

Json layers_json(const ModelReport& report) {
    Json layers = Json::array();
    for (const LayerReport& layer : report.layers) {
        Json tensors = Json::array();
        for (const gguf::TensorInfo* tensor : layer.tensors)
            tensors.push_back(tensor_json(*tensor));
        layers.push_back({{"name", layer.name}, {"bytes", layer.bytes}, {"tensors", tensors}});
    }
    return layers;
}

Json state_json(const ModelReport& report) {
    Json groups = Json::array();
    for (const StateReport& state : report.state) {
        Json group = {{"kind", state.kind}};
        if (state.window != 0) group["window"] = state.window;
        group["bytes_per_token"] = state.bytes_per_token;
        group["bytes_per_sequence"] = state.bytes_per_sequence;
        groups.push_back(group);
    }
    return {{"type", "f16"}, {"groups", groups}};
}

Json parts_json(const gguf::GgufIndex& index) {
    Json parts = Json::array();
    for (const gguf::Shard& shard : index.shards())
        parts.push_back({{"file", shard.path.string()},
                         {"file_bytes", shard.file_bytes},
                         {"index_bytes", shard.index_bytes},
                         {"version", shard.version},
                         {"alignment", shard.alignment},
                         {"tensor_count", shard.tensor_count}});
    return parts;
}

Json report_json(const gguf::GgufIndex& index, const ModelReport& report) {
    Json json;
    json["parts"] = parts_json(index);
    json["architecture"] = report.architecture.empty() ? Json() : Json(report.architecture);
    json["parameter_count"] = report.parameter_count;
    json["tensor_count"] = index.tensors().size();
    json["tensor_bytes"] = index.tensor_bytes();
    json["missing_bytes"] = report.missing_bytes;
    json["metadata"] = Json::object();
    for (const auto& entry : index.metadata().entries())
        json["metadata"][entry.key] = value_json(entry.value);
    json["formats"] = Json::array();
    for (const FormatReport& format : report.formats)
        json["formats"].push_back({{"format", format.name},
                                   {"tensor_count", format.tensor_count},
                                   {"bytes", format.bytes},
                                   {"computable", format.is_computable}});
    json["layers"] = layers_json(report);
    json["state"] = report.state.empty() ? Json() : state_json(report);
    json["kinds"] = Json::array();
    for (const KindReport& kind : report.kinds)
        json["kinds"].push_back({{"kind", kind.name}, {"bytes", kind.bytes}});
    json["active_bytes_per_token"] = report.active_bytes_per_token;
    json["unused"] = {{"tensor_count", report.unused_count}, {"bytes", report.unused_bytes}};
    json["unsupported"] = report.unsupported;
    return json;
}

// ---- text

/// One line, without control characters, cut after kTextBytesShown.
std::string shown_text(std::string_view text) {
    const std::string json = Json(std::string(text.substr(0, kTextBytesShown)))
                                 .dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() <= kTextBytesShown ? json
                                          : fmt::format("{}... ({} bytes)", json, text.size());
}

std::string shown_element(const gguf::Value::Element& element) {
    if (const auto* text = std::get_if<std::string_view>(&element)) return shown_text(*text);
    return element_json(element).dump();
}

std::string shown_value(const gguf::Value& value) {
    if (!value.is_array()) return shown_element(value.element(0));
    std::vector<std::string> elements;
    for (std::size_t i = 0; i < std::min(value.count(), kArrayElementsShown); ++i)
        elements.push_back(shown_element(value.element(i)));
    if (value.count() > kArrayElementsShown) elements.emplace_back("...");
    return fmt::format("[{}]", fmt::join(elements, ", "));
}

std::string head_text(const gguf::GgufIndex& index, const ModelReport& report) {
    std::string text;
    for (const gguf::Shard& shard : index.shards())
        text += fmt::format("{}: GGUF version {}, {}, {} tensors\n", shard.path.string(),
                            shard.version, format_byte_count(shard.file_bytes), shard.tensor_count);
    text += fmt::format("architecture {}, {} tensors, {} parameters, {} of weights\n",
                        report.architecture.empty() ? "not given" : shown_text(report.architecture),
                        index.tensors().size(), report.parameter_count,
                        format_byte_count(index.tensor_bytes()));
    if (report.missing_bytes != 0)
        text += fmt::format("{} of the weights are not in the file\n",
                            format_byte_count(report.missing_bytes));
    return text;
}

std::string metadata_text(const gguf::Metadata& metadata) {
    std::string text = fmt::format("\nmetadata ({} entries)\n", metadata.entries().size());
    for (const auto& entry : metadata.entries())
        text += fmt::format("  {:<44} {:<22} {}\n", entry.key, entry.value.describe_type(),
                            shown_value(entry.value));
    return text;
}

std::string layers_text(const ModelReport& report) {
    std::string text;
    for (const LayerReport& layer : report.layers) {
        text += fmt::format("\n{}: {} tensors, {}\n", layer.name, layer.tensors.size(),
                            format_byte_count(layer.bytes));
        for (const gguf::TensorInfo* tensor : layer.tensors)
            text += fmt::format(
                "  {:<44} {:<8} {:>9}  {}\n", tensor->name, quant::describe_type(tensor->type_id),
                format_byte_count(tensor->bytes), fmt::join(dims_of(*tensor), " x "));
    }
    return text;
}

std::string summary_text(const ModelReport& report) {
    std::string text = "\nformats\n";
    for (const FormatReport& format : report.formats)
        text += fmt::format("  {:<8} {:>5} tensors {:>9}{}\n", format.name, format.tensor_count,
                            format_byte_count(format.bytes),
                            format.is_computable ? "" : "  (not supported)");
    if (!report.kinds.empty()) text += "\nweights\n";
    for (const KindReport& kind : report.kinds)
        text += fmt::format("  {:<16} {:>9}\n", kind.name, format_byte_count(kind.bytes));
    if (!report.kinds.empty())
        text += fmt::format("  {:<16} {:>9} a token\n", "active",
                            format_byte_count(report.active_bytes_per_token));
    if (!report.state.empty()) text += "\nstate, with f16 values\n";
    for (const StateReport& state : report.state)
        text += fmt::format("  {}{}: {} bytes a token, {} bytes a sequence\n", state.kind,
                            state.window == 0 ? "" : fmt::format(" ({} tokens)", state.window),
                            state.bytes_per_token, state.bytes_per_sequence);
    if (report.unused_count != 0)
        text += fmt::format("\nwarning: {} tensors ({}) are not used by this architecture\n",
                            report.unused_count, format_byte_count(report.unused_bytes));
    text += report.unsupported.empty() ? "\nunsupported: nothing\n" : "\nunsupported\n";
    for (const std::string& reason : report.unsupported) text += fmt::format("  {}\n", reason);
    return text;
}

// ---- the command

Error dump_tensor(const gguf::GgufIndex& index, const std::string& name, const std::string& path) {
    const gguf::TensorInfo* tensor = index.find_tensor(name);
    if (tensor == nullptr) return not_found("the model has no tensor '{}'", name);
    const auto format = quant::find_format(tensor->type_id);
    if (!format)
        return unimplemented("tensor '{}' has format {}, which this build can't decode", name,
                             quant::describe_type(tensor->type_id));
    ARTEL_ASSIGN(const gguf::TensorReader reader, gguf::TensorReader::open(index));
    ARTEL_ASSIGN(FloatFile file, FloatFile::create(path));
    const quant::FormatTraits& traits = quant::format_traits(*format);
    const std::uint64_t piece_bytes = kPieceBytes / traits.block_bytes * traits.block_bytes;
    std::vector<std::byte> bytes;
    std::vector<float> floats;
    for (std::uint64_t first = 0; first < tensor->bytes; first += bytes.size()) {
        bytes.resize(static_cast<std::size_t>(std::min(piece_bytes, tensor->bytes - first)));
        floats.resize(bytes.size() / traits.block_bytes * traits.block_elements);
        ARTEL_TRY(reader.read(*tensor, first, bytes));
        ARTEL_TRY(quant::decode_row(*format, bytes, floats));
        ARTEL_TRY(file.write(floats));
    }
    return file.finish();
}

Error inspect(const InspectCommand& command) {
    const auto index = gguf::GgufIndex::open(command.model, quant::block_size_of);
    if (!index.ok()) return index.status();
    if (!command.dump.empty()) return dump_tensor(*index, command.dump[0], command.dump[1]);
    const ModelReport report = report_model(*index);
    if (command.wants_json)
        return write_output(
            report_json(*index, report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return write_output(head_text(*index, report) + metadata_text(index->metadata()) +
                        layers_text(report) + summary_text(report));
}

}  // namespace

void add_inspect_command(CLI::App& app, Command& run) {
    const auto options = std::make_shared<InspectCommand>();
    auto* command = app.add_subcommand("inspect", "Say what a GGUF file holds");
    command
        ->add_option("model", options->model, "GGUF file, any part of a split one, or its folder")
        ->required();
    command->add_flag("--json", options->wants_json, "Print JSON");
    command->add_option("--dump", options->dump, "Write one tensor as float32: TENSOR OUT.f32")
        ->expected(2);
    command->callback([options, &run] { run = [options] { return inspect(*options); }; });
}

}  // namespace artel::cli
