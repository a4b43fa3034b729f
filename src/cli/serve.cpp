// SPDX-License-Identifier: Apache-2.0
// artel serve -m MODEL.gguf: one model over local or joining workers, behind the OpenAI API.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>

#include "api/api_server.hpp"
#include "base/byte_count.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "cli/cluster_options.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/model_text.hpp"
#include "cli/plan_table.hpp"
#include "cli/serve_control.hpp"
#include "cli/stop_signals.hpp"
#include "runtime/cluster_service.hpp"
#include "text/chat_template.hpp"

namespace artel::cli {
namespace {

using std::chrono::milliseconds;
constexpr auto kDrainPatience = std::chrono::seconds(30);

struct ServeCommand {
    ModelOptions model;
    ClusterOptions cluster;
    api::ApiOptions api;
    std::string alias;
    std::string key_file;
};

/// Until a signal asks for the end. Prints what a person wants to see each time the cluster begins
/// to serve. Errors: FailedPrecondition (it cannot ever, and has not yet).
Error watch(runtime::ClusterService& service, const api::ApiServer& server) {
    bool was_serving = false;
    bool has_served = false;
    while (!stop_was_asked(milliseconds(100))) {
        const Error error = has_served ? ok() : service.wait_until_serving(milliseconds(0));
        if (error.code() == ErrorCode::kFailedPrecondition) return error;
        has_served = has_served || error.ok();
        const cluster::Health health = service.requests().health();
        const bool is_serving = health.state == cluster::ServiceState::Serving;
        if (is_serving && !was_serving) {
            std::fputs(plan_table(plan_view(health)).c_str(), stdout);
            std::printf("serving on http://%s\n", server.address().c_str());
            std::fflush(stdout);
        }
        was_serving = is_serving;
    }
    return ok();
}

Error serve(const ServeCommand& command) {
    block_stop_signals();
    raise_descriptor_limit();
    ARTEL_TRY(check_cluster_options(command.model, command.cluster));
    ARTEL_ASSIGN(const ModelText text, load_model_text(command.model.model));
    ARTEL_TRY(check_against_model(text.index.metadata(), command.model, command.model.context));
    std::unique_ptr<text::ChatTemplate> chat;
    std::string no_chat_reason;
    auto opened = open_chat_template(text, command.model.chat_template);
    if (opened.ok()) {
        chat = *std::move(opened);
        if (const Error late = chat->check_ready(); !late.ok())
            log_warning("chat requests fail until this is repaired",
                        {{"reason", std::string(late.message())}});
    } else if (!command.model.chat_template.empty()) {
        return opened.status();
    } else {
        no_chat_reason = std::string(opened.status().message());
        log_warning("chat requests will be refused", {{"reason", no_chat_reason}});
    }

    const auto cluster_options = service_options(command.model, command.cluster);
    ARTEL_ASSIGN(const auto control, ServeControl::open(cluster_options.state_dir));
    ARTEL_ASSIGN(auto service, runtime::ClusterService::create(cluster_options));
    api::ApiOptions api_options = command.api;
    if (!command.key_file.empty()) api_options.key_file = command.key_file;
    const auto unix_time = [] { return static_cast<std::int64_t>(std::time(nullptr)); };
    api::ChatModel model{.alias = command.alias.empty()
                                      ? std::filesystem::path(command.model.model).stem().string()
                                      : command.alias,
                         .tokenizer = text.tokenizer.get(),
                         .render = {},
                         .no_chat_reason = no_chat_reason};
    if (chat) {
        model.render = [&chat](const text::RenderRequest& request) {
            return chat->render(request);
        };
        model.tool_calls = text::tool_call_format(chat->source());
    }
    ARTEL_ASSIGN(auto server, api::ApiServer::create(api_options, {.requests = service->requests(),
                                                                   .model = std::move(model),
                                                                   .model_created = unix_time(),
                                                                   .unix_time = unix_time}));
    server->start();
    control->attach(*service);
    log_info("listening", {{"api", server->address()}});
    if (!service->join_key().empty()) {
        std::printf("join key (good for an hour): %s\n", service->join_key().c_str());
        std::fflush(stdout);
    }
    const Error error = watch(*service, *server);
    control->detach();
    if (error.ok())
        log_info("stopping; running requests may finish",
                 {{"seconds", std::chrono::seconds(kDrainPatience).count()}});
    server->stop(error.ok() ? kDrainPatience : milliseconds(0));
    service->stop(milliseconds(500));
    return error;
}

}  // namespace

void add_serve_command(CLI::App& app, Command& run) {
    auto* command =
        app.add_subcommand("serve", "Serve a model over its workers behind the OpenAI API");
    const auto options = std::make_shared<ServeCommand>();
    add_model_options(*command, options->model);
    add_cluster_options(*command, options->cluster);
    command->add_option("--listen", options->api.listen, "Address of the API")
        ->capture_default_str();
    command->add_option("--alias", options->alias, "The model's name in the API");
    command->add_option("--api-key-file", options->key_file, "File with one API key a line");
    command->add_flag("--no-api-key", options->api.has_no_keys_by_choice,
                      "Let anyone who reaches the API use it");
    command->callback([&app, &run, options] {
        options->cluster.log_level = app.get_option("--log-level")->as<std::string>();
        run = [options] { return serve(*options); };
    });
}

}  // namespace artel::cli
