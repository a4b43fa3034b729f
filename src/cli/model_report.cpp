// SPDX-License-Identifier: Apache-2.0
#include "cli/model_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "models/description.hpp"
#include "quant/formats.hpp"
#include "quant/type_names.hpp"
#include "text/tokenizer.hpp"

namespace artel::cli {

namespace {

std::string_view kind_name(graph::StateKind kind) {
    switch (kind) {
        case graph::StateKind::Paged:
            return "paged";
        case graph::StateKind::Windowed:
            return "windowed";
        case graph::StateKind::Slot:
            return "slot";
    }
    return "unknown";
}

std::vector<LayerReport> group_by_layer(const gguf::GgufIndex& index) {
    std::map<std::int64_t, LayerReport> layers;  // by number, -1 for none
    for (const gguf::TensorInfo& tensor : index.tensors()) {
        const std::int64_t number = layer_of(tensor.name);
        LayerReport& layer = layers[number];
        layer.bytes += tensor.bytes;
        layer.tensors.push_back(&tensor);
    }
    std::vector<LayerReport> ordered;
    for (auto& [number, layer] : layers) {
        layer.name = number < 0 ? "outside layers" : fmt::format("layer {}", number);
        ordered.push_back(std::move(layer));
    }
    return ordered;
}

std::vector<FormatReport> count_formats(const gguf::GgufIndex& index) {
    std::map<std::uint32_t, FormatReport> formats;  // by type id
    for (const gguf::TensorInfo& tensor : index.tensors()) {
        FormatReport& format = formats[tensor.type_id];
        format.name = quant::describe_type(tensor.type_id);
        format.is_computable = quant::find_format(tensor.type_id).has_value();
        format.bytes += tensor.bytes;
        ++format.tensor_count;
    }
    std::vector<FormatReport> ordered;
    for (auto& [id, format] : formats) ordered.push_back(std::move(format));
    std::ranges::sort(ordered, std::greater{}, &FormatReport::bytes);
    return ordered;
}

std::uint64_t count_missing(const gguf::GgufIndex& index) {
    std::uint64_t missing = 0;
    for (const gguf::TensorInfo& tensor : index.tensors()) {
        const std::uint64_t file_bytes = index.shards()[tensor.shard].file_bytes;
        const std::uint64_t end = tensor.offset + tensor.bytes;
        if (end > file_bytes) missing += std::min(tensor.bytes, end - file_bytes);
    }
    return missing;
}

/// By the names that GGUF gives to tensors of every architecture.
std::string_view kind_of(std::string_view tensor) {
    constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
        {"_exps.", "routed experts"}, {"_shexp.", "shared experts"},
        {".ssm_", "recurrent"},       {".attn_", "attention"},
        {".ffn_", "dense"},
    };
    if (!tensor.starts_with("blk.")) return "ends";
    for (const auto& [part, kind] : kKinds)
        if (tensor.find(part) != std::string_view::npos) return kind;
    return "other";
}

std::vector<KindReport> count_kinds(const models::ModelDescription& description) {
    std::map<std::string, std::uint64_t> tensors;  // each once: a tied head is the embedding
    const auto add = [&](const models::PartDescription& part) {
        for (const models::TensorUse& tensor : part.tensors) tensors[tensor.name] = tensor.bytes;
    };
    add(description.input);
    for (const models::PartDescription& layer : description.layers) add(layer);
    add(description.output);
    std::map<std::string_view, std::uint64_t> kinds;
    for (const auto& [name, bytes] : tensors) kinds[kind_of(name)] += bytes;
    std::vector<KindReport> ordered;
    for (const auto& [name, bytes] : kinds) ordered.push_back({std::string(name), bytes});
    std::ranges::sort(ordered, std::greater{}, &KindReport::bytes);
    return ordered;
}

std::uint64_t count_active(const models::ModelDescription& description) {
    std::uint64_t bytes =
        description.input.row_cost.weight_bytes + description.output.row_cost.weight_bytes;
    for (const models::PartDescription& layer : description.layers)
        bytes += layer.row_cost.weight_bytes;
    return bytes;
}

/// Fills in what only the architecture knows.
void add_description(const models::ModelDescription& description, ModelReport& report) {
    for (const graph::StateGroupSpec& group : description.shape.state_groups)
        report.state.push_back(
            {.kind = std::string(kind_name(group.kind)), .window = group.window});
    for (const models::PartDescription& layer : description.layers)
        for (const models::StateUse& use : layer.state) {
            report.state[use.group].bytes_per_token += use.bytes_per_token;
            report.state[use.group].bytes_per_sequence += use.bytes_per_sequence;
        }
    report.kinds = count_kinds(description);
    report.active_bytes_per_token = count_active(description);
    report.unused_count = description.unused.size();
    report.unused_bytes = description.unused_bytes;
}

void add_architecture(const gguf::GgufIndex& index, ModelReport& report) {
    if (const Error error = to_error(models::open_model(index.metadata())); !error.ok()) {
        report.unsupported.emplace_back(error.message());
        return;
    }
    // A description fails at the first format that can't be computed, which is said already.
    const bool is_computable = std::ranges::all_of(report.formats, &FormatReport::is_computable);
    const Result<models::ModelDescription> description = models::describe(index);
    if (description.ok())
        add_description(*description, report);
    else if (is_computable)
        report.unsupported.emplace_back(description.status().message());
}

}  // namespace

std::int64_t layer_of(std::string_view tensor_name) {
    constexpr std::string_view kPrefix = "blk.";
    if (!tensor_name.starts_with(kPrefix)) return -1;
    const char* first = tensor_name.data() + kPrefix.size();
    const char* last = tensor_name.data() + tensor_name.size();
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(first, last, number);
    return error == std::errc() && end != last && *end == '.' ? std::int64_t{number} : -1;
}

ModelReport report_model(const gguf::GgufIndex& index) {
    ModelReport report;
    const auto architecture = index.metadata().find<std::string_view>("general.architecture");
    if (architecture.ok() && *architecture) report.architecture = **architecture;
    for (const gguf::TensorInfo& tensor : index.tensors())
        report.parameter_count += tensor.elements();
    report.missing_bytes = count_missing(index);
    report.layers = group_by_layer(index);
    report.formats = count_formats(index);
    for (const FormatReport& format : report.formats)
        if (!format.is_computable)
            report.unsupported.push_back(
                fmt::format("format {} ({} tensors): this build does not compute with it",
                            format.name, format.tensor_count));
    add_architecture(index, report);
    const auto tokenizer = text::Tokenizer::create(index.metadata());
    if (!tokenizer.ok())
        report.unsupported.emplace_back(with_context(tokenizer.status(), "tokenizer").message());
    return report;
}

}  // namespace artel::cli
