// SPDX-License-Identifier: Apache-2.0
// Every kind's cuts of one text made to tell the kinds apart. The expected pieces come from the
// published regular expressions, run by another engine (Python's `regex` module).
#include "text/pre_tokenizer_kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <set>

#include "text/pre_tokenizer.hpp"

namespace artel::text {
namespace {

PreTokenizer make(std::string_view name) {
    const PreTokenizerKind* kind = find_pre_tokenizer_kind(name);
    EXPECT_NE(kind, nullptr) << name;
    auto made = PreTokenizer::create(*kind);
    EXPECT_TRUE(made.ok()) << name << ": " << made.status().message();
    return *std::move(made);
}

std::string cut(std::string_view name, std::string_view text) {
    std::string all;
    for (const std::string_view piece : make(name).split(text)) {
        if (!all.empty()) all += "\u00A6";
        all += piece;
    }
    return all;
}

struct Golden {
    std::string_view name;
    std::string_view pieces;
};

// "¦" stands between pieces.
constexpr Golden kGolden[] = {
    {"bailingmoe",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"bloom",
     "I'll\u00A6 WE'RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x=12;\u00A6\r\n\n  ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u4E2D\u6587Ab\u6F22"
     "\u00A6 \uFB01\u00C0\u00A6 \u00ABq\u00BB\u00A6.,\u00A6/\u00A6\n\u00A6/"
     "\u00A6 e\u0301\u00A6 a\u00A6\t\u00A6b\u00A6  "},
    {"chatglm-bpe",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"codeshell",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62"
     "\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924"
     "\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"command-r",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62"
     "\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924"
     "\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"dbrx",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"deepseek-coder",
     "I\u00A6'\u00A6ll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61"
     "\u00A62\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\u00A6\n\u00A6\n\u00A6 \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947\u00A6)\u00A6 \u00A6\u4E2D\u6587\u00A6Ab\u00A6\u6F22"
     "\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e"
     "\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"deepseek-r1-qwen",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"deepseek-v3",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u00A6\u4E2D\u6587"
     "\u00A6Ab\u00A6\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\n"
     "\u00A6/\u00A6 e\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"exaone",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62"
     "\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924"
     "\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"falcon",
     "I\u00A6'\u00A6ll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A6123"
     "\u00A6456\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\u00A6\r\n\n  \u00A6("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924\u00A6\u0947\u00A6)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00A6\u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"glm4",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"gpt-2",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x"
     "\u00A6=\u00A612\u00A6;\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0"
     "\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a"
     "\u00A6\t\u00A6b\u00A6  "},
    {"gpt-4o",
     "I'll\u00A6 WE'RE\u00A6 camel\u00A6Case\u00A6XMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u4E2D\u6587Ab\u6F22"
     "\u00A6 \uFB01\u00A6\u00C0\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\n/\u00A6 e\u0301"
     "\u00A6 a\u00A6\tb\u00A6  "},
    {"gpt3-finnish",
     "I'll\u00A6 WE'RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x=12;\u00A6\r\n\n  ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u4E2D\u6587Ab\u6F22"
     "\u00A6 \uFB01\u00C0\u00A6 \u00ABq\u00BB\u00A6.,\u00A6/\u00A6\n\u00A6/"
     "\u00A6 e\u0301\u00A6 a\u00A6\t\u00A6b\u00A6  "},
    {"granite-docling",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x"
     "\u00A6=\u00A612\u00A6;\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0"
     "\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a"
     "\u00A6\t\u00A6b\u00A6  "},
    {"grok-2",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"hunyuan",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"jais",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x"
     "\u00A6=\u00A612\u00A6;\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0"
     "\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a"
     "\u00A6\t\u00A6b\u00A6  "},
    {"llama-bpe",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"llama-v3",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"llama3",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"llama4",
     "I'll\u00A6 WE'RE\u00A6 camel\u00A6Case\u00A6XMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u4E2D\u6587Ab\u6F22"
     "\u00A6 \uFB01\u00A6\u00C0\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\n/\u00A6 e\u0301"
     "\u00A6 a\u00A6\tb\u00A6  "},
    {"minerva-7b",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62"
     "\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924"
     "\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"minimax-m2",
     "I'll\u00A6 WE'RE\u00A6 camel\u00A6Case\u00A6XMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u4E2D\u6587Ab\u6F22"
     "\u00A6 \uFB01\u00A6\u00C0\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\n/\u00A6 e\u0301"
     "\u00A6 a\u00A6\tb\u00A6  "},
    {"mpt",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x"
     "\u00A6=\u00A612\u00A6;\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0"
     "\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a"
     "\u00A6\t\u00A6b\u00A6  "},
    {"olmo",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x"
     "\u00A6=\u00A612\u00A6;\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0"
     "\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a"
     "\u00A6\t\u00A6b\u00A6  "},
    {"phi-2",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x"
     "\u00A6=\u00A612\u00A6;\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0"
     "\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a"
     "\u00A6\t\u00A6b\u00A6  "},
    {"poro-chat",
     "I'll\u00A6 WE'RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x=12;\u00A6\r\n\n  ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u4E2D\u6587Ab\u6F22"
     "\u00A6 \uFB01\u00C0\u00A6 \u00ABq\u00BB\u00A6.,\u00A6/\u00A6\n\u00A6/"
     "\u00A6 e\u0301\u00A6 a\u00A6\t\u00A6b\u00A6  "},
    {"qwen2",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"qwen35",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"refact",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62"
     "\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924"
     "\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"seed-coder",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\u00A6\r\n\n"
     "\u00A6 \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"smaug-bpe",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A6123\u00A6456"
     "\u00A67\u00A6 x\u00A6=\u00A612\u00A6;\r\n\n\u00A6 \u00A6 ("
     "\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"smollm",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62"
     "\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924"
     "\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"solar-open",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"stablelm2",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63"
     "\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;\r\n\n\u00A6 "
     "\u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u0924\u00A6\u0947)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"starcoder",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62"
     "\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62\u00A6;"
     "\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D\u00A6\u0924"
     "\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a\u00A6\t\u00A6b"
     "\u00A6  "},
    {"tekken",
     "I\u00A6'll\u00A6 WE\u00A6'RE\u00A6 camel\u00A6Case\u00A6XMLid\u00A6 \u00A61"
     "\u00A62\u00A63\u00A64\u00A65\u00A66\u00A67\u00A6 x\u00A6=\u00A61\u00A62"
     "\u00A6;\r\n\n\u00A6 \u00A6 (\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)"
     "\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00A6\u00C0\u00A6 \u00AB\u00A6q"
     "\u00A6\u00BB.,/\n/\u00A6 e\u0301\u00A6 a\u00A6\tb\u00A6  "},
    {"trillion",
     "I\u00A6'll\u00A6 WE\u00A6'\u00A6RE\u00A6 camelCaseXMLid\u00A6 1234567\u00A6 x"
     "\u00A6=\u00A612\u00A6;\u00A6\r\n\n \u00A6 (\u00A6\u0928\u092E\u0938\u00A6\u094D"
     "\u00A6\u0924\u00A6\u0947)\u00A6 \u4E2D\u6587Ab\u6F22\u00A6 \uFB01\u00C0"
     "\u00A6 \u00AB\u00A6q\u00A6\u00BB.,/\u00A6\n\u00A6/\u00A6 e\u00A6\u0301\u00A6 a"
     "\u00A6\t\u00A6b\u00A6  "},
    {"viking",
     "I'll\u00A6 WE'RE\u00A6 camelCaseXMLid\u00A6 \u00A61\u00A62\u00A63\u00A64\u00A65"
     "\u00A66\u00A67\u00A6 x=\u00A61\u00A62\u00A6;\u00A6\r\n\n  ("
     "\u00A6\u0928\u092E\u0938\u094D\u0924\u0947\u00A6)\u00A6 \u4E2D\u6587Ab\u6F22"
     "\u00A6 \uFB01\u00C0\u00A6 \u00ABq\u00BB\u00A6.,\u00A6/\u00A6\n\u00A6/"
     "\u00A6 e\u0301\u00A6 a\u00A6\t\u00A6b\u00A6  "},
};

TEST(PreTokenizerKinds, CutAsThePublishedExpressionsDo) {
    std::set<std::string_view> checked;
    for (const Golden& golden : kGolden) {
        std::string text(golden.pieces);
        for (std::size_t at; (at = text.find("\u00A6")) != std::string::npos;) text.erase(at, 2);
        EXPECT_EQ(cut(golden.name, text), golden.pieces) << golden.name;
        checked.insert(golden.name);
    }
    for (const PreTokenizerKind& kind : pre_tokenizer_kinds())
        EXPECT_TRUE(checked.contains(kind.name)) << kind.name << " has no golden pieces";
}

TEST(PreTokenizerKinds, CompileAndLoseNoText) {
    const std::string text = "Don't\r\n\r\n  stop 1234567 \u0928\u092E\u0938\u094D \u4e2d\u6587\t ";
    for (const PreTokenizerKind& kind : pre_tokenizer_kinds()) {
        std::string all;
        for (const std::string_view piece : make(kind.name).split(text)) {
            EXPECT_FALSE(piece.empty()) << kind.name;
            all += piece;
        }
        EXPECT_EQ(all, text) << kind.name;
    }
}

TEST(PreTokenizerKinds, NamesAreUniqueAndUnknownOnesAreNotGuessed) {
    std::set<std::string_view> names;
    for (const PreTokenizerKind& kind : pre_tokenizer_kinds())
        EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    for (const char* name : {"", "default", "llama", "qwen", "GPT-2", "deepseek"})
        EXPECT_EQ(find_pre_tokenizer_kind(name), nullptr) << name;
}

/// Field case C18: a megabyte of one letter. Matching that is quadratic would take hours here, one
/// that recurses would crash; processor time, since the machine may be busy.
TEST(PreTokenizerKinds, OneMegabyteOfOneLetterTakesLinearTime) {
    std::set<const char* const*> seen;  // kinds that share their patterns are one
    for (const PreTokenizerKind& kind : pre_tokenizer_kinds()) {
        if (!seen.insert(kind.patterns.data()).second) continue;
        const PreTokenizer pre_tokenizer = make(kind.name);
        for (const std::string unit : {"a", "A", " ", "\n", ".", "7", "\u4e2d", "\u0928\u094D"}) {
            std::string text;
            while (text.size() < (unit == "a" ? 1'000'000U : 100'000U)) text += unit;
            const std::clock_t start = std::clock();
            EXPECT_GE(pre_tokenizer.split(text).size(), 1U);
            EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC) << kind.name << " " << unit;
        }
    }
}

}  // namespace
}  // namespace artel::text
