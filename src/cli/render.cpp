// SPDX-License-Identifier: Apache-2.0
// artel render (-m MODEL.gguf | --template FILE.jinja [--bos S] [--eos S]) --messages FILE.json
//     [--tools FILE.json] [--no-generation-prompt] [--now 2026-03-14T09:26:53]
#include <CLI/CLI.hpp>

#include <memory>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/model_text.hpp"

namespace artel::cli {
namespace {

struct RenderCommand {
    std::string model;
    std::string template_file;
    std::string bos;
    std::string eos;
    std::string messages;
    std::string tools;
    std::string now;
    bool omits_generation_prompt = false;
};

Result<std::unique_ptr<text::ChatTemplate>> load_template(const RenderCommand& command) {
    if (!command.model.empty()) {
        ARTEL_ASSIGN(const ModelText model, load_model_text(command.model));
        return load_chat_template(model);
    }
    ARTEL_ASSIGN(std::string source,
                 read_file(command.template_file, text::ChatTemplate::kTemplateBytesMax));
    return text::ChatTemplate::create(std::move(source), {.bos = command.bos, .eos = command.eos});
}

Error render(const RenderCommand& command) {
    ARTEL_ASSIGN(const std::string messages,
                 read_file(command.messages, text::ChatTemplate::kRequestBytesMax));
    std::string tools;
    if (!command.tools.empty()) {
        ARTEL_ASSIGN(tools, read_file(command.tools, text::ChatTemplate::kRequestBytesMax));
    }
    ARTEL_ASSIGN(const auto chat_template, load_template(command));
    ARTEL_ASSIGN(const text::RenderedPrompt prompt,
                 chat_template->render({.messages_json = messages,
                                        .tools_json = tools,
                                        .adds_generation_prompt = !command.omits_generation_prompt,
                                        .now = command.now}));
    return write_output(prompt.text());
}

}  // namespace

void add_render_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("render", "Print the prompt that a chat template makes");
    const auto options = std::make_shared<RenderCommand>();
    auto* source = command->add_option_group("template");
    source->add_option("-m,--model", options->model, "GGUF file whose template is used");
    auto* file = source->add_option("--template", options->template_file, "Jinja file");
    source->require_option(1);
    command->add_option("--bos", options->bos, "Spelling of the BOS token")->needs(file);
    command->add_option("--eos", options->eos, "Spelling of the EOS token")->needs(file);
    command->add_option("--messages", options->messages, "JSON list of messages")->required();
    command->add_option("--tools", options->tools, "JSON list of tools");
    command->add_flag("--no-generation-prompt", options->omits_generation_prompt,
                      "End after the last message");
    command->add_option("--now", options->now,
                        "Date and time for strftime_now, as 2026-03-14T09:26:53");
    command->callback([&run, options] { run = [options] { return render(*options); }; });
}

}  // namespace artel::cli
