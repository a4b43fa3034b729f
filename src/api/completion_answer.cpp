// SPDX-License-Identifier: Apache-2.0
#include "api/completion_answer.hpp"

#include <iterator>
#include <utility>

#include "api/answer_sink.hpp"
#include "api/random_name.hpp"
#include "base/log.hpp"
#include "text/utf8.hpp"

namespace artel::api {
namespace {

void append(AnswerPart& whole, AnswerPart part) {
    if (part.content) whole.content = whole.content.value_or("") + *part.content;
    if (part.logprobs) {
        if (!whole.logprobs) whole.logprobs.emplace();
        std::move(part.logprobs->begin(), part.logprobs->end(),
                  std::back_inserter(*whole.logprobs));
    }
    std::move(part.tool_calls.begin(), part.tool_calls.end(), std::back_inserter(whole.tool_calls));
    if (!part.finish_reason.empty()) whole.finish_reason = std::move(part.finish_reason);
}

}  // namespace

void CompletionAnswer::watch_client() {
    parts_.responder.on_disconnect([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->on_client_gone();
    });
}

void CompletionAnswer::on_client_gone() {
    client_is_gone_ = true;
    if (is_over_) return;
    is_over_ = true;
    cancel();
    note_end("client_gone");
}

void CompletionAnswer::start(PreparedCompletion prepared,
                             const std::shared_ptr<IoMailbox>& mailbox) {
    if (is_over_) return;
    options_ = std::move(prepared.options);
    usage_.prompt_tokens = prepared.prompt_tokens;
    for (std::uint32_t index = 0; index < prepared.requests.size(); ++index) {
        const std::string& echo = prepared.echoes[index];
        auto text = ChoiceText::create(parts_.tokenizer,
                                       {.index = index,
                                        .options = &options_,
                                        .tool_calls = prepared.tool_calls,
                                        .tools_json = prepared.tools_json,
                                        .allows_parallel_calls = prepared.allows_parallel_calls,
                                        .make_call_id = [] { return random_name("call_"); },
                                        .text_offset = text::count_characters(echo)});
        if (!text.ok())
            return refuse(ApiError::invalid("stop", std::string(text.status().message())));
        choices_.emplace_back(*std::move(text), echo);
        choices_.back().whole.index = index;
    }
    choices_left_ = choices_.size();
    // The sinks only post, so nothing of these requests runs before submit() has returned.
    for (std::uint32_t index = 0; index < choices_.size(); ++index)
        choices_[index].request = parts_.requests.submit(
            std::move(prepared.requests[index]),
            std::make_shared<AnswerSink>(shared_from_this(), index, mailbox));
}

void CompletionAnswer::cancel() {
    for (const Choice& choice : choices_)
        if (choice.request.value != 0 && !choice.is_over) parts_.requests.cancel(choice.request);
}

void CompletionAnswer::refuse(const ApiError& error) {
    if (!is_over_) fail(error);
}

void CompletionAnswer::on_refused(const cluster::Refusal& refusal) {
    if (!is_over_) fail(to_api_error(refusal));
}

void CompletionAnswer::on_failed(const cluster::RequestFailure& failure) {
    if (!is_over_) fail(to_api_error(failure));
}

void CompletionAnswer::on_token(std::uint32_t index, const cluster::Token& token) {
    Choice& choice = choices_[index];
    if (is_over_ || choice.is_over) return;
    begin(choice, index);
    if (is_over_ || token.is_end) return;  // on_finished follows
    if (choice.text.names_a_stop(token)) {
        parts_.requests.cancel(choice.request);
        return end_choice(choice, cluster::FinishReason::Stop);
    }
    count_token(choice);
    if (auto part = choice.text.add(token)) show(choice, *std::move(part));
    if (is_over_ || !choice.text.is_stopped()) return;
    parts_.requests.cancel(choice.request);
    end_choice(choice, cluster::FinishReason::Stop);
}

void CompletionAnswer::count_token(Choice& choice) {
    ++usage_.completion_tokens;
    const Time now = std::chrono::steady_clock::now();
    if (choice.last_token)
        parts_.metrics.on_next_token(now - *choice.last_token);
    else
        parts_.metrics.on_first_token(now - began_);
    choice.last_token = now;
}

void CompletionAnswer::on_finished(std::uint32_t index, cluster::FinishReason reason) {
    Choice& choice = choices_[index];
    if (is_over_ || choice.is_over) return;
    if (reason == cluster::FinishReason::Cancelled)
        return fail(to_api_error(unavailable("the request was cancelled by the server")));
    begin(choice, index);
    if (!is_over_) end_choice(choice, reason);
}

/// The head of the stream, then the first chunk of each choice; and the prompt that it echoes.
void CompletionAnswer::begin(Choice& choice, std::uint32_t index) {
    if (choice.has_begun) return;
    choice.has_begun = true;
    if (options_.is_stream && !is_streaming_) {
        is_streaming_ = true;
        parts_.responder.start_stream(sse_head());
    }
    const bool is_chat = parts_.head.kind == CompletionKind::Chat;
    AnswerPart first;
    first.index = index;
    first.has_role = is_chat;
    first.content = std::exchange(choice.echo, {});
    if (is_chat || !first.content->empty()) show(choice, std::move(first));
}

void CompletionAnswer::show(Choice& choice, AnswerPart part) {
    if (!options_.is_stream) return append(choice.whole, std::move(part));
    if (!parts_.responder.push(
            to_sse_event(to_chunk_json(parts_.head, part, options_.includes_usage))))
        on_client_gone();
}

void CompletionAnswer::end_choice(Choice& choice, cluster::FinishReason reason) {
    AnswerPart last = choice.text.finish(reason);
    choice.is_over = true;
    if (options_.is_stream && (last.content || !last.tool_calls.empty())) {
        // Text that was held back comes as a chunk of its own: some clients read no text beside a
        // finish_reason.
        AnswerPart ending;
        ending.index = last.index;
        ending.finish_reason = std::exchange(last.finish_reason, {});
        show(choice, std::move(last));
        last = std::move(ending);
    }
    if (is_over_) return;
    show(choice, std::move(last));
    if (!is_over_ && --choices_left_ == 0) end();
}

void CompletionAnswer::end() {
    is_over_ = true;
    if (options_.is_stream) {
        if (options_.includes_usage)
            parts_.responder.push(to_sse_event(to_usage_chunk_json(parts_.head, usage_)));
        parts_.responder.push(std::string(kSseDone));
        parts_.responder.finish();
    } else {
        std::vector<AnswerPart> wholes;
        for (Choice& choice : choices_) wholes.push_back(std::move(choice.whole));
        parts_.responder.respond(
            {.headers = {}, .body = to_completion_json(parts_.head, wholes, usage_)});
    }
    note_end("ok");
}

void CompletionAnswer::fail(const ApiError& error) {
    is_over_ = true;
    cancel();
    if (is_streaming_) {
        parts_.responder.push(to_sse_error(error));
        parts_.responder.finish();
    } else {
        parts_.responder.respond(error.to_response());
    }
    note_end(error.code.empty() ? error.type : error.code);
}

void CompletionAnswer::note_end(std::string_view how) {
    parts_.metrics.on_completion_end(how, usage_.prompt_tokens, usage_.completion_tokens);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began_);
    log_info("completion", {{"id", parts_.head.id},
                            {"request_id", parts_.request_id},
                            {"end", how},
                            {"choices", choices_.size()},
                            {"prompt_tokens", usage_.prompt_tokens},
                            {"completion_tokens", usage_.completion_tokens},
                            {"ms", took.count()}});
}

}  // namespace artel::api
