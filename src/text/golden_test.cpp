// SPDX-License-Identifier: Apache-2.0
// Tokenizers and chat templates against the oracle's vectors (ARTEL_ORACLE, by default
// ../shared/oracle), made with llama.cpp, Hugging Face tokenizers, SentencePiece and transformers;
// the real models come from ARTEL_MODELS, by default build/models. What is not there is left out
// and said.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gguf/gguf_index.hpp"
#include "text/chat_template.hpp"
#include "text/detokenizer.hpp"

namespace artel::text {
namespace {

namespace fs = std::filesystem;
// Ordered: the order of keys in messages and tools shows in prompts.
using Json = nlohmann::ordered_json;

/// These tests are about what is rendered, also on a machine that is busy with other things.
constexpr std::chrono::seconds kPatience{60};

fs::path folder_from(const char* variable, const char* otherwise) {
    const char* given = std::getenv(variable);
    return given ? fs::path(given) : fs::path(ARTEL_SOURCE_DIR) / otherwise;
}

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string bytes_of_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

/// Only metadata are read here, so any size will do that whole rows are a multiple of.
Result<BlockSize> some_block_size(std::uint32_t) {
    return BlockSize{.elements = 32, .bytes = 1};
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path) {
    const auto index = gguf::GgufIndex::open(path, some_block_size);
    EXPECT_TRUE(index.ok()) << index.status().message();
    auto tokenizer = Tokenizer::create(index->metadata());
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    return *std::move(tokenizer);
}

void check_ids(const Tokenizer& tokenizer, const Json& vector, const std::string& key) {
    const ParseSpecial special = key == "ids" ? ParseSpecial::No : ParseSpecial::Yes;
    const std::string text = bytes_of_hex(vector["hex"]);
    const auto ids = tokenizer.tokenize(text, {.special = special});
    // Where an independent tokenizer disagrees, either answer is right (see the oracle's README).
    if (vector.contains("ref_" + key) && ids == vector["ref_" + key].get<std::vector<TokenId>>())
        return;
    EXPECT_EQ(ids, vector[key].get<std::vector<TokenId>>()) << key << " of " << vector["text"];
}

/// Detokenizing gives the input back, but for a literal U+2581, which SentencePiece takes for a
/// space. (For two of its vocabularies llama.cpp also removes spaces before signs; artel does not.)
void check_text(const Tokenizer& tokenizer, const Json& vector) {
    const std::string text = vector["text"];
    const auto ids = vector["ids"].get<std::vector<TokenId>>();
    if (detokenize(tokenizer, ids) == text) return;
    ASSERT_TRUE(vector.contains("detok_hex")) << vector["text"];
    EXPECT_EQ(detokenize(tokenizer, ids), bytes_of_hex(vector["detok_hex"])) << vector["text"];
}

TEST(Golden, Tokenizers) {
    const fs::path oracle = folder_from("ARTEL_ORACLE", "../shared/oracle") / "tok";
    const fs::path models = folder_from("ARTEL_MODELS", "build/models");
    std::size_t checked = 0;
    for (const char* name :
         {"smollm2", "gemma3", "llama-spm", "llama-bpe", "qwen2", "gpt-2", "deepseek-coder"}) {
        SCOPED_TRACE(name);
        const Json golden = Json::parse(read(oracle / (std::string(name) + ".json")), nullptr,
                                        /*allow_exceptions=*/false);
        const std::string file = golden.is_object() ? golden["gguf"] : "";
        const fs::path path = fs::exists(models / file) ? models / file : oracle / file;
        if (file.empty() || !fs::is_regular_file(path)) {
            std::printf("NOT CHECKED: %s (set ARTEL_ORACLE and ARTEL_MODELS)\n", name);
            continue;
        }
        const auto tokenizer = load_tokenizer(path);
        EXPECT_EQ(tokenizer->adds_bos(), golden["add_bos"] == 1);
        for (const Json& vector : golden["cases"]) {
            if (vector["text"].is_null()) {  // not UTF-8: any tokens will do, but no crash
                tokenizer->tokenize(bytes_of_hex(vector["hex"]), {.special = ParseSpecial::Yes});
                continue;
            }
            check_ids(*tokenizer, vector, "ids");
            check_ids(*tokenizer, vector, "ids_parse_special");
            check_text(*tokenizer, vector);
            ++checked;
        }
    }
    std::printf("%zu texts checked\n", checked);
}

/// The golden.json of a real model, null if it or the model is not there.
Json real_model(const fs::path& folder, fs::path& model) {
    const Json golden = Json::parse(read(folder / "golden.json"), nullptr,
                                    /*allow_exceptions=*/false);
    if (!golden.is_object()) return nullptr;
    model = folder_from("ARTEL_MODELS", "build/models") / golden["file"].get<std::string>();
    return fs::is_regular_file(model) ? golden : Json(nullptr);
}

std::vector<TokenId> prompt_ids(ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                const Json& messages) {
    const auto prompt = chat_template.render({.messages_json = messages.dump()});
    EXPECT_TRUE(prompt.ok()) << prompt.status().message();
    if (!prompt.ok()) return {};
    return tokenizer.tokenize(prompt->segments, AddBos::IfModelSays);
}

/// Field case C87: what a user types never becomes a control token, whatever he types.
void check_typed_control_tokens(ChatTemplate& chat_template, const Tokenizer& tokenizer) {
    const auto controls = [&](const std::string& content) {
        const Json messages = {{{"role", "user"}, {"content", content}}};
        const auto ids = prompt_ids(chat_template, tokenizer, messages);
        return std::ranges::count_if(ids, [&](TokenId id) { return tokenizer.is_control(id); });
    };
    std::string all;
    for (const std::string& spelling : tokenizer.control_spellings()) all += spelling + " ";
    EXPECT_EQ(controls(all), controls("hello"));
}

TEST(Golden, PromptsOfRealModels) {
    const fs::path oracle = folder_from("ARTEL_ORACLE", "../shared/oracle") / "real";
    for (const char* name : {"smollm2", "gemma3-270m"}) {
        SCOPED_TRACE(name);
        fs::path path;
        const Json golden = real_model(oracle / name, path);
        if (golden.is_null()) {
            std::printf("NOT CHECKED: prompts of %s (set ARTEL_ORACLE and ARTEL_MODELS)\n", name);
            continue;
        }
        const auto tokenizer = load_tokenizer(path);
        ChatTemplateOptions options = chat_template_options(*tokenizer);
        options.answer_limit = options.start_limit = kPatience;
        const auto chat_template = ChatTemplate::create(golden["chat_template"], options);
        ASSERT_TRUE(chat_template.ok()) << chat_template.status().message();
        for (const Json& prompt : golden["cases"])
            EXPECT_EQ(prompt_ids(**chat_template, *tokenizer, prompt["messages"]),
                      prompt["prompt_ids"].get<std::vector<TokenId>>());
        check_typed_control_tokens(**chat_template, *tokenizer);
    }
}

/// With control tokens to look out for, so that the equality also covers the marked renders.
ChatTemplateOptions golden_options(const Json& golden) {
    const auto spelling = [&golden](const char* key) {
        return golden.contains(key) && golden[key].is_string() ? golden[key].get<std::string>()
                                                               : "";
    };
    ChatTemplateOptions options{.bos = spelling("bos_token"), .eos = spelling("eos_token")};
    options.answer_limit = options.start_limit = kPatience;
    options.control_spellings = {"<|im_start|>", "<|im_end|>", "</s>", "[INST]", "<start_of_turn>"};
    return options;
}

void check_render(ChatTemplate& chat_template, const Json& conversation, const Json& golden) {
    const std::string messages = conversation["messages"].dump();
    const bool has_tools = conversation.contains("tools") && !conversation["tools"].is_null();
    const std::string tools = has_tools ? conversation["tools"].dump() : "";
    const auto prompt =
        chat_template.render({.messages_json = messages,
                              .tools_json = tools,
                              .adds_generation_prompt = golden["add_generation_prompt"].get<bool>(),
                              .now = "2026-03-14T09:26:53"});
    if (golden.contains("text")) {
        ASSERT_TRUE(prompt.ok()) << prompt.status().message();
        EXPECT_EQ(prompt->text(), golden["text"].get<std::string>());
    } else if (golden["error"] == "TemplateError") {
        EXPECT_EQ(prompt.status().code(), ErrorCode::kInvalidArgument);
    }  // other errors: something sensible may be rendered
}

TEST(Golden, ChatTemplates) {
    const fs::path oracle = folder_from("ARTEL_ORACLE", "../shared/oracle") / "templates";
    const Json conversations = Json::parse(read(oracle / "conversations.json"), nullptr,
                                           /*allow_exceptions=*/false);
    if (!conversations.is_object()) {
        std::printf("NOT CHECKED: no oracle at %s (set ARTEL_ORACLE)\n", oracle.c_str());
        return;
    }
    std::size_t checked = 0;
    for (const auto& entry : fs::directory_iterator(oracle)) {
        if (entry.path().extension() != ".json" || entry.path().stem() == "conversations") continue;
        SCOPED_TRACE(entry.path().stem().string());
        const Json golden = Json::parse(read(entry.path()));
        auto chat_template = ChatTemplate::create(
            read(oracle / golden["template"].get<std::string>()), golden_options(golden));
        ASSERT_TRUE(chat_template.ok()) << chat_template.status().message();
        for (const Json& render : golden["cases"]) {
            const std::string name = render["conversation"];
            SCOPED_TRACE(name);
            check_render(**chat_template, conversations[name], render);
            ++checked;
        }
    }
    EXPECT_GT(checked, 0U);
    std::printf("%zu renders checked\n", checked);
}

}  // namespace
}  // namespace artel::text
