// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.hpp"

#include <mutex>
#include <nlohmann/json.hpp>

#include "gguf/metadata.hpp"
#include "text/template_child.hpp"
#include "text/utf8.hpp"

namespace artel::text {
namespace {

using Json = nlohmann::json;

Error check_utf8(std::string_view text, std::string_view name) {
    const std::size_t valid = valid_utf8_bytes(text);
    if (valid == text.size()) return ok();
    return invalid_argument("{}: byte {} is not valid UTF-8", name, valid);
}

/// The answer of the child, or the error that it reports.
Result<Json> read_answer(const std::string& answer) {
    const Json json = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return internal_error("the chat template process answers nonsense");
    const auto error = json.find("error");
    if (error == json.end()) return json;
    const std::string message = error->is_string() ? error->get<std::string>() : "unknown error";
    const auto kind = json.find("kind");
    if (kind != json.end() && *kind == "limit")
        return resource_exhausted("the chat template exceeds its limits: {}",
                                  message.substr(0, 500));
    if (kind != json.end() && *kind == "refused")
        return invalid_argument("the chat template refuses these messages: {}", message);
    return invalid_argument("the chat template failed: {}", message.substr(0, 2'000));
}

Result<RenderedPrompt> read_prompt(const Json& answer) {
    const auto segments = answer.find("segments");
    if (segments == answer.end() || !segments->is_array())
        return internal_error("the chat template process answers without segments");
    RenderedPrompt prompt;
    for (const Json& segment : *segments) {
        if (!segment.is_array() || segment.size() != 2 || !segment[0].is_string() ||
            !segment[1].is_boolean())
            return internal_error("the chat template process answers a wrong segment");
        prompt.segments.push_back({segment[0].get<std::string>(),
                                   segment[1].get<bool>() ? ParseSpecial::Yes : ParseSpecial::No});
    }
    return prompt;
}

/// Whether the child is to blame and not what it was asked.
bool child_was_lost(const Error& error) {
    return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kDeadlineExceeded;
}

}  // namespace

class ChatTemplate::Renderer {
  public:
    Renderer(std::string template_text, ChatTemplateOptions options)
        : template_text_(std::move(template_text)), options_(std::move(options)) {}

    std::string_view source() const { return template_text_; }

    Error ensure_started() {
        const std::lock_guard lock(mutex_);
        return ensure_started_locked();
    }

    Result<RenderedPrompt> render(const RenderRequest& request) {
        const Json body = {{"messages", request.messages_json},
                           {"tools", request.tools_json},
                           {"add_generation_prompt", request.adds_generation_prompt},
                           {"now", request.now}};
        const std::string frame = body.dump();
        if (frame.size() > kRequestBytesMax)
            return resource_exhausted("the messages have {} bytes; at most {}", frame.size(),
                                      kRequestBytesMax);
        const std::lock_guard lock(mutex_);
        auto answer = exchange(frame);
        if (child_was_lost(answer.status())) answer = exchange(frame);
        ARTEL_TRY(answer);
        ARTEL_ASSIGN(const Json json, read_answer(*answer));
        return read_prompt(json);
    }

  private:
    Result<std::string> exchange(const std::string& frame) {
        ARTEL_TRY(ensure_started_locked());
        return child_.exchange(frame, kAnswerBytesMax, options_.answer_limit);
    }

    Error ensure_started_locked() {
        if (child_.is_running()) return ok();
        const Error error = start();
        return child_was_lost(error) ? start() : error;
    }

    Error start() {
        ARTEL_TRY(child_.start());
        // Python's own start is not the template's fault, so it has a limit of its own.
        const auto ready = child_.exchange("{}", kAnswerBytesMax, options_.start_limit);
        if (ready.status().code() == ErrorCode::kDeadlineExceeded)
            return deadline_exceeded("the process for chat templates did not start within {} ms",
                                     options_.start_limit.count());
        if (!ready.ok())
            return unavailable(
                "the process for chat templates ended as it started (is python3 with jinja2 "
                "installed? On Debian: apt install python3-jinja2)");
        const Json body = {{"template", template_text_},
                           {"bos", options_.bos},
                           {"eos", options_.eos},
                           {"control_spellings", options_.control_spellings}};
        ARTEL_ASSIGN(const std::string answer,
                     child_.exchange(body.dump(), kAnswerBytesMax, options_.answer_limit));
        const auto json = read_answer(answer);
        if (!json.ok()) child_.kill();
        return to_error(json);
    }

    const std::string template_text_;
    const ChatTemplateOptions options_;
    std::mutex mutex_;
    TemplateChild child_;  // guarded by mutex_
};

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::create(std::string template_text,
                                                           ChatTemplateOptions options) {
    if (template_text.size() > kTemplateBytesMax)
        return resource_exhausted("the chat template has {} bytes; at most {} are supported",
                                  template_text.size(), kTemplateBytesMax);
    ARTEL_TRY(check_utf8(template_text, "chat template"));
    ARTEL_TRY(check_utf8(options.bos, "bos token"));
    ARTEL_TRY(check_utf8(options.eos, "eos token"));
    // A spelling that is not valid UTF-8 can't occur in JSON texts.
    std::erase_if(options.control_spellings, [](const std::string& spelling) {
        return spelling.empty() || !is_valid_utf8(spelling);
    });
    auto renderer = std::make_unique<Renderer>(std::move(template_text), std::move(options));
    if (const Error error = renderer->ensure_started(); !error.ok() && !child_was_lost(error))
        return error;
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(renderer)));
}

ChatTemplate::ChatTemplate(std::unique_ptr<Renderer> renderer) : renderer_(std::move(renderer)) {}
ChatTemplate::~ChatTemplate() = default;

Error ChatTemplate::check_ready() {
    return renderer_->ensure_started();
}

std::string_view ChatTemplate::source() const {
    return renderer_->source();
}

Result<RenderedPrompt> ChatTemplate::render(const RenderRequest& request) {
    ARTEL_TRY(check_utf8(request.messages_json, "messages"));
    ARTEL_TRY(check_utf8(request.tools_json, "tools"));
    ARTEL_TRY(check_utf8(request.now, "now"));
    return renderer_->render(request);
}

ChatTemplateOptions chat_template_options(const Tokenizer& tokenizer) {
    const auto spelling = [&tokenizer](std::optional<TokenId> id) {
        return id ? std::string(tokenizer.token_spelling(*id)) : std::string();
    };
    return {.bos = spelling(tokenizer.bos()),
            .eos = spelling(tokenizer.eos()),
            .control_spellings = tokenizer.control_spellings()};
}

Result<std::optional<std::string>> chat_template_text(const gguf::Metadata& metadata) {
    ARTEL_ASSIGN(const auto text, metadata.find<std::string_view>("tokenizer.chat_template"));
    if (!text) return std::nullopt;
    return std::string(*text);
}

}  // namespace artel::text
