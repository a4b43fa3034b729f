// SPDX-License-Identifier: Apache-2.0
// Answers as the model families write them, whole and cut anywhere.
#include "text/tool_calls.hpp"

#include <gtest/gtest.h>

namespace artel::text {
namespace {

constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{)"
    R"("zip":{"type":"string"},"days":{"type":"integer"}}}}}])";

/// Text and calls as one line: "text|name({...})|..."
std::string read(ToolCallFormat format, std::string_view answer, std::size_t step) {
    ToolCallStream stream(format, std::string(kTools));
    std::string text, calls;
    const auto take = [&](const ToolCallStream::Output& output) {
        text += output.text;
        for (const ToolCall& call : output.calls)
            calls += "|" + call.name + "(" + call.arguments_json + ")";
    };
    for (std::size_t at = 0; at < answer.size(); at += step)
        take(stream.add(answer.substr(at, step)));
    take(stream.finish());
    return text + calls;
}

struct Case {
    ToolCallFormat format;
    std::string_view answer;
    std::string_view expected;
};

constexpr Case kCases[] = {
    {ToolCallFormat::Tagged,
     "Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"days\": 2}}\n</tool_call>",
     R"(Let me see.|f({"days":2}))"},
    {ToolCallFormat::Tagged,
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n"
     "{\"name\": \"g\", \"arguments\": \"{\\\"a\\\": [1]}\"}\n</tool_call>\n",
     R"(|f({})|g({"a":[1]}))"},
    {ToolCallFormat::Tagged,  // the end marker is a control token that ends the answer
     "<tool_call>{\"name\": \"f\", \"arguments\": {\"days\": 2}}", R"(|f({"days":2}))"},
    {ToolCallFormat::Tagged,
     "<tool_call>\n<function=f>\n<parameter=zip>\n01234\n</parameter>\n<parameter=days>\n3\n"
     "</parameter>\n</function>\n</tool_call>",
     R"(|f({"zip":"01234","days":3}))"},
    {ToolCallFormat::Tagged,
     "<tool_call>f\n<arg_key>zip</arg_key>\n<arg_value>77</arg_value>\n<arg_key>days</arg_key>\n"
     "<arg_value>5</arg_value>\n</tool_call>",
     R"(|f({"zip":"77","days":5}))"},
    {ToolCallFormat::Seed,
     "<seed:tool_call>\n<function=f>\n<parameter=days>3</parameter>\n</function>\n"
     "</seed:tool_call>",
     R"(|f({"days":3}))"},
    {ToolCallFormat::MiniMax,
     "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"zip\">7</parameter>\n</invoke>\n"
     "<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
     R"(|f({"zip":"7"})|g({}))"},
    {ToolCallFormat::Nemotron,
     "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"days\": 1}}, {\"name\": \"g\", "
     "\"arguments\": {}}]</TOOLCALL>",
     R"(|f({"days":1})|g({}))"},
    {ToolCallFormat::CommandR,
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": "
     "{\"days\": 1}}\n]<|END_ACTION|>",
     R"(|f({"days":1}))"},
    {ToolCallFormat::Kimi,
     "Yes.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
     "<|tool_call_argument_begin|>{\"days\": 1}<|tool_call_end|><|tool_calls_section_end|>",
     R"(Yes.|f({"days":1}))"},
    {ToolCallFormat::DeepSeek,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"days\": 1}"
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     R"(|f({"days":1}))"},
    {ToolCallFormat::DeepSeek,
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"days\": 1}"
     "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     R"(|f({"days":1}))"},
    {ToolCallFormat::Mistral,
     "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"days\": 1}, \"id\": \"a1b2c3d4e\"}]",
     R"(|f({"days":1}))"},
    {ToolCallFormat::Mistral,
     "[TOOL_CALLS]f[CALL_ID]a1b2c3d4e[ARGS]{\"days\": 1}[TOOL_CALLS]g[ARGS]{}",
     R"(|f({"days":1})|g({}))"},
    {ToolCallFormat::Granite, "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"days\": 1}}]",
     R"(|f({"days":1}))"},
    {ToolCallFormat::LlamaJson, "\n{\"name\": \"f\", \"parameters\": {\"days\": 1}}",
     R"(|f({"days":1}))"},
    {ToolCallFormat::LlamaJson, "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"days\": 1}}",
     R"(|f({"days":1}))"},
    // What is no call stays text, to the last character.
    {ToolCallFormat::Tagged, "a <tool_call>nothing here</tool_call> b ",
     "a<tool_call>nothing here</tool_call> b "},
    {ToolCallFormat::Tagged, "1 < 2 <tool <", "1 < 2 <tool <"},
    {ToolCallFormat::Tagged, "<tool_call>{\"name\": 5}</tool_call>",
     "<tool_call>{\"name\": 5}</tool_call>"},
    {ToolCallFormat::LlamaJson, "{\"temperature\": 5}", "{\"temperature\": 5}"},
    {ToolCallFormat::LlamaJson, "It is {warm}.\n", "It is {warm}.\n"},
    {ToolCallFormat::None, "<tool_call>{\"name\": \"f\"}</tool_call>",
     "<tool_call>{\"name\": \"f\"}</tool_call>"},
};

TEST(ToolCalls, AreReadHoweverTheAnswerIsCut) {
    for (const Case& one : kCases)
        for (const std::size_t step :
             {std::size_t{1}, std::size_t{2}, std::size_t{7}, one.answer.size()})
            EXPECT_EQ(read(one.format, one.answer, step), one.expected)
                << one.answer << " in steps of " << step;
}

TEST(ToolCalls, BrokenBodiesAreNoCalls) {
    for (const std::string_view body :
         {"", "{", "[]", "[1]", "null", "{\"arguments\":{}}", "{\"name\":\"\"}",
          "{\"name\":\"f\",\"arguments\":7}", "{\"name\":\"f\",\"arguments\":\"{\"}",
          "<function=f>", "<function=f><parameter=a>1</function>", "<invoke name=\"f\">",
          "f\n<arg_key>a", "<arg_key>a</arg_key><arg_value>1</arg_value>", "<|tool_call_begin|>x",
          "<｜tool▁call▁begin｜>", "name without arguments"})
        EXPECT_TRUE(parse_tool_calls(body, kTools).empty()) << body;
    EXPECT_TRUE(parse_tool_calls(std::string(100'000, '['), kTools).empty());
    EXPECT_TRUE(parse_tool_calls(std::string(100'000, '{'), "").empty());
}

TEST(ToolCalls, TheFormatIsReadOffTheTemplate) {
    const struct {
        std::string_view text;
        ToolCallFormat format;
    } table[] = {
        {"{% for m in messages %}{{ m.content }}{% endfor %}", ToolCallFormat::None},
        {"{% if tools %}<tool_call>{% endif %}", ToolCallFormat::Tagged},
        {"{{ tools }} <seed:tool_call>", ToolCallFormat::Seed},
        {"{{ tools }} [TOOL_CALLS]", ToolCallFormat::Mistral},
        {"{{ tools }} <|tool_call|>", ToolCallFormat::Granite},
        {"{{ tools }} \"parameters\": dictionary of", ToolCallFormat::LlamaJson},
        {"{{ tools }} <|tool_call>call:", ToolCallFormat::Unknown},
    };
    for (const auto& [text, format] : table) EXPECT_EQ(tool_call_format(text), format) << text;
}

TEST(ToolCalls, MarkersThatAreControlTokensAreWanted) {
    EXPECT_TRUE(ToolCallStream(ToolCallFormat::Mistral).is_marker("[TOOL_CALLS]"));
    EXPECT_TRUE(ToolCallStream(ToolCallFormat::Mistral).is_marker("[ARGS]"));
    EXPECT_FALSE(ToolCallStream(ToolCallFormat::Mistral).is_marker("</s>"));
    EXPECT_FALSE(ToolCallStream(ToolCallFormat::None).is_marker("[TOOL_CALLS]"));
}

}  // namespace
}  // namespace artel::text
