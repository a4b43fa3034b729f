// SPDX-License-Identifier: Apache-2.0
// artel eval -m MODEL.gguf [--chunk N] (--tokens FILE.json --logits OUT.f32 | --perplexity
// FILE.txt)
#include <CLI/CLI.hpp>

#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "cli/cluster_client.hpp"
#include "cli/commands.hpp"
#include "cli/float_file.hpp"
#include "cli/local_model.hpp"
#include "cli/model_options.hpp"
#include "cli/model_text.hpp"
#include "models/description.hpp"
#include "quant/type_names.hpp"

namespace artel::cli {
namespace {

using engine::TokenId;
using Json = nlohmann::ordered_json;

constexpr std::uint32_t kChunkDefault = 64;
constexpr std::uint32_t kChunkMax = 4096;
constexpr std::size_t kTokensMax = std::size_t{1} << 24;

struct EvalCommand {
    ModelOptions model;
    std::uint32_t chunk = kChunkDefault;
    std::string tokens;      // path
    std::string logits;      // path
    std::string perplexity;  // path
    std::string log_level;   // of worker processes
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

using TakeLogits = std::function<Error(std::span<const float>)>;  // (rows, vocabulary)
/// Reads one text from its first token on and hands out the logits of all positions, in order.
using ReadText = std::function<Error(std::span<const TokenId>, const TakeLogits&)>;

/// Over worker processes.
Result<ReadText> open_cluster(const EvalCommand& command, std::uint32_t context) {
    ARTEL_ASSIGN(auto started, start_cluster(command.model, {.context = context,
                                                             .parallel = 1,
                                                             .chunk = command.chunk,
                                                             .log_level = command.log_level}));
    std::shared_ptr<runtime::ClusterService> service = std::move(started);
    return [service](std::span<const TokenId> tokens, const TakeLogits& take) {
        cluster::Request request;
        request.prompt.assign(tokens.begin(), tokens.end());
        request.wants_prompt_logits = true;
        request.generates = false;
        return run_request(service->requests(), std::move(request), {.on_logits = take});
    };
}

/// In this process. `index` must outlive what is returned.
Result<ReadText> open_inside(const EvalCommand& command, const gguf::GgufIndex& index,
                             std::uint32_t context) {
    const LocalLimits limits{.context = context, .rows_max = command.chunk};
    ARTEL_ASSIGN(auto loaded, LocalModel::load(index, command.model, limits));
    std::shared_ptr<LocalModel> model = std::move(loaded);
    return [model, chunk = command.chunk](std::span<const TokenId> tokens,
                                          const TakeLogits& take) -> Error {
        ARTEL_TRY(model->chain().feed({.sequence = 0, .tokens = tokens, .wants_all_logits = true},
                                      chunk, take));
        model->chain().drop(0);
        return ok();
    };
}

Result<ReadText> open_reader(const EvalCommand& command, const gguf::GgufIndex& index,
                             std::uint32_t context) {
    if (wants_workers(command.model)) return open_cluster(command, context);
    return open_inside(command, index, context);
}

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
    ARTEL_ASSIGN(const ReadText read,
                 open_reader(command, index, static_cast<std::uint32_t>(tokens.size())));
    ARTEL_ASSIGN(FloatFile file, FloatFile::create(command.logits));
    ARTEL_TRY(read(tokens, [&](std::span<const float> logits) { return file.write(logits); }));
    return file.finish();
}

/// Sum of -ln p(tokens[i + 1] | tokens[0..i]) in one context.
Result<double> window_likelihood(const ReadText& read, std::span<const TokenId> tokens,
                                 std::size_t vocabulary) {
    double sum = 0;
    std::size_t next = 1;
    const auto add = [&](std::span<const float> logits) {  // (rows, vocabulary)
        for (; !logits.empty() && next < tokens.size(); logits = logits.subspan(vocabulary))
            sum += negative_log_likelihood(logits.first(vocabulary), tokens[next++]);
        return ok();
    };
    ARTEL_TRY(read(tokens, add));
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
    ARTEL_ASSIGN(const models::Model model, models::open_model(text.index.metadata()));
    ARTEL_ASSIGN(const ReadText read, open_reader(command, text.index, context));
    double sum = 0;
    std::size_t predicted = 0;
    const std::span<const TokenId> all = tokens;
    for (std::size_t first = 0; first + 1 < all.size(); first += context) {
        const auto window = all.subspan(first, std::min<std::size_t>(context, all.size() - first));
        ARTEL_ASSIGN(const double part,
                     window_likelihood(read, window, model.shape.vocabulary_size));
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
    command->callback([&app, &run, options] {
        options->log_level = client_log_level(app);
        if (options->tokens.empty() && options->perplexity.empty())
            throw CLI::RequiredError("--tokens with --logits, or --perplexity");
        run = [options] {
            return options->perplexity.empty() ? eval_logits(*options) : eval_perplexity(*options);
        };
    });
}

}  // namespace artel::cli
