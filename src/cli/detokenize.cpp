// SPDX-License-Identifier: Apache-2.0
// artel detokenize -m MODEL.gguf IDS.json
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/model_text.hpp"
#include "text/detokenizer.hpp"

namespace artel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DetokenizeCommand {
    std::string model;
    std::string ids;
};

Result<std::vector<text::TokenId>> read_ids(const std::string& path, std::size_t vocabulary_size) {
    ARTEL_ASSIGN(const std::string file, read_file(path, kInputBytesMax));
    const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array()) return invalid_argument("{}: not a JSON list of token ids", path);
    std::vector<text::TokenId> ids;
    for (const Json& entry : json) {
        if (!entry.is_number_unsigned() || entry.get<std::uint64_t>() >= vocabulary_size)
            return invalid_argument("{}: entry {} is {}; expected a token id below {}", path,
                                    ids.size(), entry.dump().substr(0, 64), vocabulary_size);
        ids.push_back(entry.get<text::TokenId>());
    }
    return ids;
}

Error detokenize(const DetokenizeCommand& command) {
    ARTEL_ASSIGN(const ModelText model, load_model_text(command.model));
    const text::Tokenizer& tokenizer = *model.tokenizer;
    ARTEL_ASSIGN(const auto all, read_ids(command.ids, tokenizer.vocabulary_size()));
    std::span<const text::TokenId> ids = all;
    // The inverse of tokenize: the BOS that it puts in front is not part of the text.
    if (tokenizer.adds_bos() && !ids.empty() && ids[0] == tokenizer.bos()) ids = ids.subspan(1);
    return write_output(
        text::detokenize(tokenizer, ids, {.starts_text = true, .shows_control = true}));
}

}  // namespace

void add_detokenize_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("detokenize", "Print the text of token ids");
    const auto options = std::make_shared<DetokenizeCommand>();
    command->add_option("-m,--model", options->model, "GGUF file")->required();
    command->add_option("ids", options->ids, "File with a JSON list of token ids")->required();
    command->callback([&run, options] { run = [options] { return detokenize(*options); }; });
}

}  // namespace artel::cli
