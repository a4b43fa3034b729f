// SPDX-License-Identifier: Apache-2.0
// ChatTemplate: messages -> prompt, by a model's Jinja template. Templates come with model files
// and are not trusted: they run in a Python child without network or files, with limits on memory
// and time; a child that ends or does not answer in time is killed, and what it was asked is asked
// once more of a new one. Thread-safe: one mutex, one render at a time. The child ends with this
// object or its process.
//
// Origin. Control tokens typed in a message must stay text, so a prompt is a list of segments of
// which only those from the template parse special tokens. The child renders once as is, and again
// with a private-use mark in front of the characters of message strings that could begin or end a
// control token's spelling:
//   1. If that render without its marks equals the first, each marked character is a segment of
//      message text: no control token can begin or end in a message, not even half a spelling that
//      the template completes.
//   2. Else (the template compares or splits such text, e.g. at "</think>") only whole spellings in
//      messages are marked.
//   3. If that differs too, the origin is lost: every occurrence of a spelling that some message
//      holds counts as text, also the template's own.
// A template that builds a spelling around a message's field ("<|" + role + "|>") means it.
// Templates that fail on a null content or on tool arguments as JSON text are tried once more with
// an empty content and with objects.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/prompt.hpp"
#include "text/tokenizer.hpp"

namespace artel::gguf {
class Metadata;
}

namespace artel::text {

struct ChatTemplateOptions {
    std::string bos = {};  // spelling of the BOS token, empty if the model has none
    std::string eos = {};
    std::vector<std::string> control_spellings = {};  // of the tokenizer
    std::chrono::milliseconds start_limit{30'000};    // of Python itself
    std::chrono::milliseconds answer_limit{1'000};
};

/// What templates are told of a model's tokenizer.
ChatTemplateOptions chat_template_options(const Tokenizer& tokenizer);

struct RenderRequest {
    std::string_view messages_json = {};  // a JSON list of objects
    std::string_view tools_json = {};     // a JSON list, or empty for none
    bool adds_generation_prompt = true;
    std::string_view now = {};  // ISO date and time for strftime_now; empty for the clock
};

class ChatTemplate {
  public:
    static constexpr std::size_t kTemplateBytesMax = 1 << 20;
    static constexpr std::size_t kRequestBytesMax = 32 << 20;
    static constexpr std::size_t kAnswerBytesMax = 32 << 20;

    /// Starts the child and compiles the template. Errors: InvalidArgument (not a template),
    /// ResourceExhausted (limits). A child that can't be started is check_ready()'s business: it
    /// may be later.
    static Result<std::unique_ptr<ChatTemplate>> create(std::string template_text,
                                                        ChatTemplateOptions options);
    ~ChatTemplate();
    ChatTemplate(const ChatTemplate&) = delete;
    ChatTemplate& operator=(const ChatTemplate&) = delete;

    /// Whether the child is there. Errors: DeadlineExceeded, Unavailable (no Python with jinja2).
    Error check_ready();

    /// Errors: InvalidArgument (the template refuses these messages, with its own words),
    /// ResourceExhausted (limits), DeadlineExceeded and Unavailable (twice no answer).
    Result<RenderedPrompt> render(const RenderRequest& request);

    /// The template itself, which also tells how the model writes tool calls (tool_calls.hpp).
    std::string_view source() const;

  private:
    class Renderer;
    explicit ChatTemplate(std::unique_ptr<Renderer> renderer);
    std::unique_ptr<Renderer> renderer_;
};

/// tokenizer.chat_template of a model file; nothing if it has none (then chat needs
/// --chat-template).
Result<std::optional<std::string>> chat_template_text(const gguf::Metadata& metadata);

}  // namespace artel::text
