// SPDX-License-Identifier: Apache-2.0
// Tool calls in a model's answer. Each family of models writes them in its own way; which one is
// read off the chat template, since that is what the model was taught. ToolCallStream takes the
// answer's text in any cuts and gives back text to show and whole calls. What looks like a call
// and is none stays text. Held back is what may still become a call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace artel::text {

enum class ToolCallFormat : std::uint8_t {
    None,       // the template takes no tools
    Unknown,    // it takes tools, in a format that is not read here
    Tagged,     // <tool_call>...</tool_call>: Hermes, Qwen, GLM
    Seed,       // <seed:tool_call>...</seed:tool_call>
    MiniMax,    // <minimax:tool_call><invoke name="f">...
    Nemotron,   // <TOOLCALL>[{...}]</TOOLCALL>
    CommandR,   // <|START_ACTION|>[{"tool_name":..}]<|END_ACTION|>
    Kimi,       // <|tool_calls_section_begin|>...
    DeepSeek,   // <|tool_calls_begin|> with its own bars and underscores
    Mistral,    // [TOOL_CALLS] to the end
    Granite,    // <|tool_call|>[{...}] to the end
    LlamaJson,  // the whole answer is {"name":.., "parameters":..}
};

ToolCallFormat tool_call_format(std::string_view chat_template);

struct ToolCall {
    std::string name;
    std::string arguments_json;  // an object
};

/// The calls in the text between the markers of a format; empty if it holds anything else.
/// `tools_json`: the request's tools; formats that write arguments without types look there.
std::vector<ToolCall> parse_tool_calls(std::string_view body, std::string_view tools_json);

class ToolCallStream {
  public:
    struct Output {
        std::string text;
        std::vector<ToolCall> calls;  // after the text
    };

    /// None passes everything through.
    explicit ToolCallStream(ToolCallFormat format, std::string tools_json = {});

    /// Whether a control token with this spelling must be added as text.
    bool is_marker(std::string_view spelling) const;
    Output add(std::string_view text);
    /// The rest. An open call counts if it is whole but for its end marker.
    Output finish();

  private:
    void take_text(Output& output);
    bool take_call(Output& output, bool is_end);
    void close_call(std::string_view body, Output& output, std::string raw);

    ToolCallFormat format_;
    std::string tools_json_;
    std::string held_;
    bool is_in_call_ = false;
    bool has_begun_ = false;  // something other than white space has come
    bool has_calls_ = false;
};

}  // namespace artel::text
