// SPDX-License-Identifier: Apache-2.0
// artel run -m MODEL.gguf [-n N] [--temperature T] [--seed S] [--ignore-eos] [--raw] PROMPT
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cluster_client.hpp"
#include "cli/commands.hpp"
#include "cli/local_model.hpp"
#include "cli/model_options.hpp"
#include "cli/model_text.hpp"
#include "engine/sampler.hpp"
#include "text/detokenizer.hpp"

namespace artel::cli {
namespace {

using engine::TokenId;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint32_t kChunk = 256;

struct RunCommand {
    ModelOptions model;
    std::uint32_t tokens_max = 0;  // 0: until the end, or until the context is full
    float temperature = 0;
    std::uint64_t seed = 0;
    bool ignores_eos = false;
    bool is_raw = false;
    std::string system;
    std::string prompt;
    std::string log_level;  // of worker processes
};

struct Speed {
    std::size_t tokens = 0;
    SteadyClock::time_point begin = SteadyClock::now();
    double per_second(SteadyClock::time_point end) const {
        const double passed = std::chrono::duration<double>(end - begin).count();
        return passed > 0 ? static_cast<double>(tokens) / passed : 0;
    }
};

Result<std::vector<TokenId>> prompt_tokens(const ModelText& model, const RunCommand& command) {
    if (command.is_raw)
        return model.tokenizer->tokenize(
            command.prompt, {.special = text::ParseSpecial::No, .bos = text::AddBos::IfModelSays});
    ARTEL_ASSIGN(const auto chat, open_chat_template(model, command.model.chat_template));
    nlohmann::json messages = nlohmann::json::array();
    if (!command.system.empty())
        messages.push_back({{"role", "system"}, {"content", command.system}});
    messages.push_back({{"role", "user"}, {"content", command.prompt}});
    const std::string json =
        messages.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    ARTEL_ASSIGN(
        const text::RenderedPrompt prompt,
        chat->render(
            {.messages_json = json, .tools_json = {}, .adds_generation_prompt = true, .now = {}}));
    return model.tokenizer->tokenize(prompt.segments, text::AddBos::IfModelSays);
}

/// Samples from `logits` and extends the sequence until an end, writing text as it comes.
Result<Speed> generate(const RunCommand& command, const ModelText& text, LocalModel& model,
                       engine::SamplingState& state, std::vector<float> logits,
                       std::uint32_t tokens_max) {
    engine::Sampler sampler;
    text::StreamDetokenizer stream(*text.tokenizer);
    const auto& ends = text.tokenizer->end_of_generation();
    Speed speed;
    while (speed.tokens < tokens_max) {
        ARTEL_ASSIGN(const engine::SampledToken sampled,
                     sampler.sample(logits, state, model.chain().length(0)));
        ++speed.tokens;
        if (!command.ignores_eos && ends.contains(sampled.token)) break;
        state.counts.add_generated(sampled.token);
        ARTEL_TRY(write_output(stream.add(sampled.token)));
        if (speed.tokens == tokens_max) break;
        const engine::SequenceTokens next{
            .sequence = 0, .tokens = {&sampled.token, 1}, .wants_all_logits = false};
        ARTEL_ASSIGN(logits, model.chain().step({&next, 1}));
    }
    ARTEL_TRY(write_output(stream.finish() + "\n"));
    return speed;
}

struct Outcome {
    Speed reading;
    SteadyClock::time_point read_end;
    Speed writing;
};

/// In this process.
Result<Outcome> answer_inside(const RunCommand& command, const ModelText& text,
                              const std::vector<TokenId>& prompt, std::uint32_t tokens_max) {
    const auto needed = static_cast<std::uint32_t>(prompt.size()) + tokens_max;
    ARTEL_ASSIGN(const auto model, LocalModel::load(text.index, command.model,
                                                    {.context = needed, .rows_max = kChunk}));
    engine::SamplingState state;
    state.parameters.temperature = command.temperature;
    state.parameters.seed = command.seed;
    ARTEL_TRY(engine::check_sampling_parameters(state.parameters,
                                                model->chain().model_shape().vocabulary_size));
    state.counts.add_prompt(prompt);
    Outcome outcome;
    outcome.reading.tokens = prompt.size();
    outcome.reading.begin = SteadyClock::now();
    std::vector<float> logits;
    ARTEL_TRY(model->chain().feed({.sequence = 0, .tokens = prompt}, kChunk,
                                  [&](std::span<const float> last) {
                                      logits.assign(last.begin(), last.end());
                                      return ok();
                                  }));
    outcome.read_end = SteadyClock::now();
    ARTEL_ASSIGN(outcome.writing,
                 generate(command, text, *model, state, std::move(logits), tokens_max));
    return outcome;
}

/// Over worker processes. The time of the prompt ends with the first token.
Result<Outcome> answer_by_workers(const RunCommand& command, const ModelText& text,
                                  const std::vector<TokenId>& prompt, std::uint32_t tokens_max) {
    const auto needed = static_cast<std::uint32_t>(prompt.size()) + tokens_max;
    ARTEL_ASSIGN(
        const auto service,
        start_cluster(
            command.model,
            {.context = needed, .parallel = 1, .chunk = kChunk, .log_level = command.log_level}));
    cluster::Request request;
    request.prompt = prompt;
    request.max_tokens = tokens_max;
    request.sampling.temperature = command.temperature;
    request.sampling.seed = command.seed;
    const auto& ends = text.tokenizer->end_of_generation();
    if (!command.ignores_eos) request.end_tokens.assign(ends.begin(), ends.end());
    Outcome outcome;
    outcome.reading.tokens = prompt.size();
    outcome.reading.begin = SteadyClock::now();
    text::StreamDetokenizer stream(*text.tokenizer);
    const auto write = [&](const cluster::Token& token) {
        if (outcome.writing.tokens++ == 0)
            outcome.read_end = outcome.writing.begin = SteadyClock::now();
        return token.is_end ? ok() : write_output(stream.add(token.id));
    };
    ARTEL_TRY(run_request(service->requests(), std::move(request), {.on_token = write}));
    ARTEL_TRY(write_output(stream.finish() + "\n"));
    return outcome;
}

Error run_prompt(const RunCommand& command) {
    ARTEL_ASSIGN(const ModelText text, load_model_text(command.model.model));
    ARTEL_ASSIGN(const std::uint32_t context, context_limit(text.index, command.model));
    ARTEL_ASSIGN(const std::vector<TokenId> prompt, prompt_tokens(text, command));
    if (prompt.empty()) return invalid_argument("the prompt is empty");
    if (prompt.size() >= context)
        return invalid_argument("the prompt has {} tokens, and the context holds {}", prompt.size(),
                                context);
    const auto room = static_cast<std::uint32_t>(context - prompt.size());
    const std::uint32_t tokens_max =
        command.tokens_max == 0 ? room : std::min(room, command.tokens_max);
    const auto answer = wants_workers(command.model) ? answer_by_workers : answer_inside;
    ARTEL_ASSIGN(const Outcome outcome, answer(command, text, prompt, tokens_max));
    std::fprintf(stderr, "prompt: %zu tokens, %.1f tokens/s; answer: %zu tokens, %.1f tokens/s\n",
                 outcome.reading.tokens, outcome.reading.per_second(outcome.read_end),
                 outcome.writing.tokens, outcome.writing.per_second(SteadyClock::now()));
    return ok();
}

}  // namespace

void add_run_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("run", "Answer one prompt");
    const auto options = std::make_shared<RunCommand>();
    add_model_options(*command, options->model);
    command->add_option("-n,--tokens", options->tokens_max, "Tokens to generate at most")
        ->check(CLI::Range(1U, 1U << 30U));
    command
        ->add_option("--temperature", options->temperature,
                     "0 takes the most likely token, 1 draws as the model says")
        ->check(CLI::Range(0.0F, 100.0F))
        ->capture_default_str();
    command->add_option("--seed", options->seed, "Of the random numbers")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    command->add_flag("--ignore-eos", options->ignores_eos,
                      "Go on past tokens that end a generation");
    auto* raw =
        command->add_flag("--raw", options->is_raw, "The prompt is no chat message but plain text");
    command->add_option("--system", options->system, "System message before the prompt")
        ->excludes(raw);
    command->add_option("prompt", options->prompt, "The prompt")->required();
    command->callback([&app, &run, options] {
        options->log_level = client_log_level(app);
        run = [options] { return run_prompt(*options); };
    });
}

}  // namespace artel::cli
