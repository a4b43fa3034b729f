// SPDX-License-Identifier: Apache-2.0
// artel tokenize -m MODEL.gguf [--special] [--no-bos] TEXT|- | --hex-batch FILE.json
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/model_text.hpp"

namespace artel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeCommand {
    std::string model;
    std::string text;
    std::string hex_batch;
    bool parses_special = false;
    bool omits_bos = false;
};

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

Result<std::string> decode_hex(const std::string& hex) {
    if (hex.size() % 2 != 0)
        return invalid_argument("{} hex digits; expected an even number", hex.size());
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        const int high = hex_digit(hex[i]);
        const int low = hex_digit(hex[i + 1]);
        if (high < 0 || low < 0) return invalid_argument("digit {} is not a hex digit", i);
        bytes.push_back(static_cast<char>(high * 16 + low));
    }
    return bytes;
}

Result<std::vector<std::string>> read_hex_batch(const std::string& path) {
    ARTEL_ASSIGN(const std::string file, read_file(path, kInputBytesMax));
    const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array()) return invalid_argument("{}: not a JSON list", path);
    std::vector<std::string> texts;
    for (const Json& entry : json) {
        if (!entry.is_string())
            return invalid_argument("{}: entry {} is not a string", path, texts.size());
        auto bytes = decode_hex(entry.get_ref<const std::string&>());
        if (!bytes.ok())
            return with_context(bytes.status(), fmt::format("{}: entry {}", path, texts.size()));
        texts.push_back(*std::move(bytes));
    }
    return texts;
}

Error tokenize(const TokenizeCommand& command) {
    ARTEL_ASSIGN(const ModelText model, load_model_text(command.model));
    const text::TokenizeOptions options{
        .special = command.parses_special ? text::ParseSpecial::Yes : text::ParseSpecial::No,
        .bos = command.omits_bos ? text::AddBos::No : text::AddBos::IfModelSays};
    Json ids = Json::array();
    if (!command.hex_batch.empty()) {
        ARTEL_ASSIGN(const auto texts, read_hex_batch(command.hex_batch));
        for (const std::string& text : texts)
            ids.push_back(model.tokenizer->tokenize(text, options));
    } else if (command.text == "-") {
        ARTEL_ASSIGN(const std::string text, read_standard_input());
        ids = model.tokenizer->tokenize(text, options);
    } else {
        ids = model.tokenizer->tokenize(command.text, options);
    }
    return write_output(ids.dump() + "\n");
}

}  // namespace

void add_tokenize_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("tokenize", "Print the token ids of a text");
    const auto options = std::make_shared<TokenizeCommand>();
    command->add_option("-m,--model", options->model, "GGUF file")->required();
    command->add_flag("--special", options->parses_special,
                      "Control tokens spelled in the text are control tokens, not text");
    command->add_flag("--no-bos", options->omits_bos,
                      "Do not begin with the BOS token where the file says so");
    auto* input = command->add_option_group("input");
    input->add_option("text", options->text, "The text, or - for standard input");
    input->add_option("--hex-batch", options->hex_batch,
                      "JSON list of hex-coded texts; prints a list of id lists");
    input->require_option(1);
    command->callback([&run, options] { run = [options] { return tokenize(*options); }; });
}

}  // namespace artel::cli
