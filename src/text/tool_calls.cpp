// SPDX-License-Identifier: Apache-2.0
#include "text/tool_calls.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace artel::text {
namespace {

struct Markers {
    ToolCallFormat format;
    std::string_view open;
    std::string_view close;  // empty: a call goes on to the next `open` or the end
};

// The more special ones first: a template may mention a marker of another family.
constexpr std::array<Markers, 9> kMarkers = {{
    {ToolCallFormat::Seed, "<seed:tool_call>", "</seed:tool_call>"},
    {ToolCallFormat::MiniMax, "<minimax:tool_call>", "</minimax:tool_call>"},
    {ToolCallFormat::Nemotron, "<TOOLCALL>", "</TOOLCALL>"},
    {ToolCallFormat::CommandR, "<|START_ACTION|>", "<|END_ACTION|>"},
    {ToolCallFormat::Kimi, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
    {ToolCallFormat::DeepSeek, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
    {ToolCallFormat::Mistral, "[TOOL_CALLS]", ""},
    {ToolCallFormat::Granite, "<|tool_call|>", ""},
    {ToolCallFormat::Tagged, "<tool_call>", "</tool_call>"},
}};
constexpr Markers kLlamaMarkers{ToolCallFormat::LlamaJson, "<|python_tag|>", ""};

// Control tokens inside of calls; without their spelling a call could not be read.
constexpr std::array<std::string_view, 10> kInnerMarkers = {"<|tool_call_begin|>",
                                                            "<|tool_call_argument_begin|>",
                                                            "<|tool_call_end|>",
                                                            "<｜tool▁call▁begin｜>",
                                                            "<｜tool▁sep｜>",
                                                            "<｜tool▁call▁end｜>",
                                                            "[ARGS]",
                                                            "[CALL_ID]",
                                                            "<arg_key>",
                                                            "<arg_value>"};

Markers markers_of(ToolCallFormat format) {
    if (format == ToolCallFormat::LlamaJson) return kLlamaMarkers;
    for (const Markers& markers : kMarkers)
        if (markers.format == format) return markers;
    return {format, {}, {}};
}

bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_blank(std::string_view text) {
    return std::all_of(text.begin(), text.end(), is_space);
}

/// Where the end of `text` may be the beginning of `marker`, white space before it included.
std::size_t first_uncertain(std::string_view text, std::string_view marker) {
    std::size_t count = std::min(marker.size() - 1, text.size());
    while (count > 0 && !text.ends_with(marker.substr(0, count))) --count;
    std::size_t first = text.size() - count;
    while (first > 0 && is_space(text[first - 1])) --first;
    return first;
}

}  // namespace

ToolCallFormat tool_call_format(std::string_view chat_template) {
    const auto has = [chat_template](std::string_view text) {
        return chat_template.find(text) != std::string_view::npos;
    };
    if (!has("tools")) return ToolCallFormat::None;
    for (const Markers& markers : kMarkers)
        if (has(markers.open)) return markers.format;
    if (has(kLlamaMarkers.open) || has("\"parameters\": dictionary"))
        return ToolCallFormat::LlamaJson;
    return ToolCallFormat::Unknown;
}

ToolCallStream::ToolCallStream(ToolCallFormat format, std::string tools_json)
    : format_(format), tools_json_(std::move(tools_json)) {}

bool ToolCallStream::is_marker(std::string_view spelling) const {
    if (format_ == ToolCallFormat::None || format_ == ToolCallFormat::Unknown) return false;
    const Markers markers = markers_of(format_);
    return spelling == markers.open || spelling == markers.close ||
           std::find(kInnerMarkers.begin(), kInnerMarkers.end(), spelling) != kInnerMarkers.end();
}

ToolCallStream::Output ToolCallStream::add(std::string_view text) {
    Output output;
    if (format_ == ToolCallFormat::None || format_ == ToolCallFormat::Unknown) {
        output.text = text;
        return output;
    }
    held_ += text;
    while (is_in_call_ && take_call(output, /*is_end=*/false)) {
    }
    if (!is_in_call_) take_text(output);
    return output;
}

/// Moves what is certainly no call to `output`, and what follows an opening marker on.
void ToolCallStream::take_text(Output& output) {
    const Markers markers = markers_of(format_);
    if (format_ == ToolCallFormat::LlamaJson && !has_begun_ && !is_blank(held_)) {
        has_begun_ = true;
        if (held_[held_.find_first_not_of(" \n\r\t")] == '{') {
            is_in_call_ = true;
            return;
        }
    }
    for (;;) {
        const std::size_t open = held_.find(markers.open);
        const bool is_open = open != std::string::npos;
        const std::size_t end =
            is_open ? first_uncertain(std::string_view(held_).substr(0, open), markers.open)
                    : first_uncertain(held_, markers.open);
        output.text += held_.substr(0, end);
        if (!is_open) {
            held_.erase(0, end);
            return;
        }
        held_.erase(0, open + markers.open.size());
        is_in_call_ = true;
        has_begun_ = true;
        while (is_in_call_)
            if (!take_call(output, /*is_end=*/false)) return;
    }
}

/// Whether a call has ended, so that text may follow.
bool ToolCallStream::take_call(Output& output, bool is_end) {
    const Markers markers = markers_of(format_);
    const std::string_view end_marker = markers.close.empty() ? markers.open : markers.close;
    const std::size_t close = held_.find(end_marker);
    if (close == std::string::npos) {
        if (is_end) close_call(held_, output, std::string(markers.open) + held_);
        return false;
    }
    const std::string body = held_.substr(0, close);
    const bool goes_on = markers.close.empty();
    held_.erase(0, close + end_marker.size());
    close_call(body, output,
               std::string(markers.open) + body + (goes_on ? "" : std::string(markers.close)));
    is_in_call_ = goes_on;
    return true;
}

void ToolCallStream::close_call(std::string_view body, Output& output, std::string raw) {
    std::vector<ToolCall> calls = parse_tool_calls(body, tools_json_);
    has_calls_ |= !calls.empty();
    if (calls.empty())
        output.text += format_ == ToolCallFormat::LlamaJson ? std::string(body) : std::move(raw);
    std::move(calls.begin(), calls.end(), std::back_inserter(output.calls));
}

ToolCallStream::Output ToolCallStream::finish() {
    Output output;
    if (is_in_call_)
        take_call(output, /*is_end=*/true);
    else if (!has_calls_ || !is_blank(held_))
        output.text = held_;
    held_.clear();
    is_in_call_ = false;
    return output;
}

}  // namespace artel::text
