// SPDX-License-Identifier: Apache-2.0
// artel eval -m MODEL.gguf [--chunk N] (--tokens FILE.json --logits OUT.f32 | --perplexity
// FILE.txt)
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/local_model.hpp"
#include "cli/model_options.hpp"
#include "cli/model_text.hpp"
#include "quant/type_names.hpp"

namespace artel::cli {
namespace {

using engine::TokenId;
using Json = nlohmann::json;

constexpr std::uint32_t kChunkDefault = 64;
constexpr std::uint32_t kChunkMax = 4096;
constexpr std::size_t kTokensMax = std::size_t{1} << 24;

struct EvalCommand {
    ModelOptions model;
    std::uint32_t chunk = kChunkDefault;
    std::string tokens;      // path
    std::string logits;      // path
    std::string perplexity;  // path
};

Result<std::vector<TokenId>> read_tokens(const std::string& path) {
    ARTEL_ASSIGN(const std::string file, read_file(path, kInputBytesMax));
    const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array() || json.empty() || json.size() > kTokensMax)
        return invalid_argument("{}: expected a JSON list of 1 to {} token ids", path, kTokensMax);
    std::vector<TokenId> tokens;
    for (const Json& entry : json) {
        if (!entry.is_number_unsigned() || entry.get<std::uint64_t>() > UINT32_MAX)
            return invalid_argument("{}: entry {} is no token id", path, tokens.size());
        tokens.push_back(entry.get<TokenId>());
    }
    return tokens;
}

/// A file that is written piece by piece; finish() reports what close(2) would hide.
class OutputFile {
  public:
    static Result<OutputFile> create(const std::string& path) {
        std::FILE* file = std::fopen(path.c_str(), "wb");
        if (file == nullptr) return errno_error("creating " + path);
        return OutputFile(path, file);
    }
    Error write(std::span<const float> values) {
        if (std::fwrite(values.data(), sizeof(float), values.size(), file_.get()) == values.size())
            return ok();
        return errno_error("writing " + path_);
    }
    Error finish() {
        if (std::fclose(file_.release()) != 0) return errno_error("writing " + path_);
        return ok();
    }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    OutputFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
};

/// -ln p(token) by a row of logits, summed in double.
double negative_log_likelihood(std::span<const float> logits, TokenId token) {
    double top = -INFINITY;
    for (const float x : logits) top = std::max(top, static_cast<double>(x));
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
    return top + std::log(sum) - static_cast<double>(logits[token]);
}

Error eval_logits(const EvalCommand& command) {
    ARTEL_ASSIGN(const auto index,
                 gguf::GgufIndex::open(command.model.model, quant::block_size_of));
    ARTEL_ASSIGN(const std::vector<TokenId> tokens, read_tokens(command.tokens));
    ARTEL_ASSIGN(const std::uint32_t context, context_limit(index, command.model));
    if (tokens.size() > context)
        return invalid_argument("{}: {} tokens, and the context holds {}", command.tokens,
                                tokens.size(), context);
    const LocalLimits limits{.context = static_cast<std::uint32_t>(tokens.size()),
                             .rows_max = command.chunk};
    ARTEL_ASSIGN(const auto model, LocalModel::load(index, command.model, limits));
    ARTEL_ASSIGN(OutputFile file, OutputFile::create(command.logits));
    ARTEL_TRY(model->chain().feed(
        {.sequence = 0, .tokens = tokens, .wants_all_logits = true}, command.chunk,
        [&](std::span<const float> logits) { return file.write(logits); }));
    return file.finish();
}

/// Sum of -ln p(tokens[i + 1] | tokens[0..i]) in one context.
Result<double> window_likelihood(engine::StageChain& chain, std::span<const TokenId> tokens,
                                 std::uint32_t chunk) {
    const std::size_t vocabulary = chain.model_shape().vocabulary_size;
    double sum = 0;
    std::size_t next = 1;
    const auto add = [&](std::span<const float> logits) {  // (rows, vocabulary)
        for (; !logits.empty() && next < tokens.size(); logits = logits.subspan(vocabulary))
            sum += negative_log_likelihood(logits.first(vocabulary), tokens[next++]);
        return ok();
    };
    ARTEL_TRY(chain.feed({.sequence = 0, .tokens = tokens, .wants_all_logits = true}, chunk, add));
    chain.drop(0);
    return sum;
}

Error eval_perplexity(const EvalCommand& command) {
    ARTEL_ASSIGN(const ModelText text, load_model_text(command.model.model));
    ARTEL_ASSIGN(const std::string passage, read_file(command.perplexity, kInputBytesMax));
    const std::vector<TokenId> tokens = text.tokenizer->tokenize(
        passage, {.special = text::ParseSpecial::No, .bos = text::AddBos::IfModelSays});
    if (tokens.size() < 2)
        return invalid_argument("{}: {} tokens, expected at least 2", command.perplexity,
                                tokens.size());
    ARTEL_ASSIGN(const std::uint32_t context_max, context_limit(text.index, command.model));
    const auto context =
        static_cast<std::uint32_t>(std::min<std::size_t>(context_max, tokens.size()));
    ARTEL_ASSIGN(const auto model,
                 LocalModel::load(text.index, command.model,
                                  {.context = context, .rows_max = command.chunk}));
    double sum = 0;
    std::size_t predicted = 0;
    const std::span<const TokenId> all = tokens;
    for (std::size_t first = 0; first + 1 < all.size(); first += context) {
        const auto window = all.subspan(first, std::min<std::size_t>(context, all.size() - first));
        ARTEL_ASSIGN(const double part, window_likelihood(model->chain(), window, command.chunk));
        sum += part;
        predicted += window.size() - 1;
    }
    return write_output(fmt::format("perplexity {:.4f} over {} tokens\n",
                                    std::exp(sum / static_cast<double>(predicted)), predicted));
}

}  // namespace

void add_eval_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("eval", "Compute the logits of tokens, or a perplexity");
    const auto options = std::make_shared<EvalCommand>();
    add_model_options(*command, options->model);
    command->add_option("--chunk", options->chunk, "Tokens in one step")
        ->check(CLI::Range(1U, kChunkMax))
        ->capture_default_str();
    auto* tokens = command->add_option("--tokens", options->tokens, "JSON list of token ids");
    auto* logits = command->add_option("--logits", options->logits,
                                       "File to write: float32, (positions, vocabulary)");
    auto* text = command->add_option("--perplexity", options->perplexity, "Text to predict");
    tokens->needs(logits);
    logits->needs(tokens);
    text->excludes(tokens);
    command->callback([&run, options] {
        if (options->tokens.empty() && options->perplexity.empty())
            throw CLI::RequiredError("--tokens with --logits, or --perplexity");
        run = [options] {
            return options->perplexity.empty() ? eval_logits(*options) : eval_perplexity(*options);
        };
    });
}

}  // namespace artel::cli
