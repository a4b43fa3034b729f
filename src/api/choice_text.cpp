// SPDX-License-Identifier: Apache-2.0
#include "api/choice_text.hpp"

#include <algorithm>
#include <utility>

#include "text/utf8.hpp"

namespace artel::api {
namespace {

constexpr float kLogprobMin = -9999.0F;  // JSON has no minus infinity

}  // namespace

Result<ChoiceText> ChoiceText::create(const text::Tokenizer& tokenizer, Settings settings) {
    ARTEL_ASSIGN(text::StopStrings stops, text::StopStrings::create(settings.options->stops));
    return ChoiceText(tokenizer, std::move(settings), std::move(stops));
}

ChoiceText::ChoiceText(const text::Tokenizer& tokenizer, Settings settings, text::StopStrings stops)
    : tokenizer_(&tokenizer),
      settings_(std::move(settings)),
      detokenizer_(tokenizer),
      stops_(std::move(stops)),
      tools_(settings_.tool_calls, settings_.tools_json),
      characters_(settings_.text_offset) {}

AnswerPart ChoiceText::empty_part() const {
    AnswerPart part;
    part.index = settings_.index;
    return part;
}

/// A stop string may be the spelling of a control token, which has no text of its own.
bool ChoiceText::names_a_stop(const cluster::Token& token) const {
    const auto& stops = settings_.options->stops;
    return tokenizer_->is_control(token.id) &&
           std::find(stops.begin(), stops.end(), tokenizer_->token_spelling(token.id)) !=
               stops.end();
}

/// Control tokens have no text, but those that frame tool calls must reach the parser.
std::string ChoiceText::text_of(const cluster::Token& token) {
    if (tokenizer_->is_control(token.id) && tools_.is_marker(tokenizer_->token_spelling(token.id)))
        return detokenizer_.finish() + std::string(tokenizer_->token_spelling(token.id));
    return detokenizer_.add(token.id);
}

std::optional<AnswerPart> ChoiceText::add(const cluster::Token& token) {
    if (is_stopped_) return std::nullopt;
    if (settings_.options->wants_logprobs) {
        logprobs_.push_back(to_logprob(token.id, token.logprob));
        logprobs_.back().text_offset = characters_;
        for (const auto& other : token.top_logprobs)
            logprobs_.back().top.push_back(to_logprob(other.token, other.logprob));
    }
    const std::string text = text_of(token);
    characters_ += text::count_characters(text);
    AnswerPart part = empty_part();
    take(tools_.add(stops_.add(text)), part);
    if (stops_.stopped()) is_stopped_ = true;
    if (!part.content && part.tool_calls.empty()) return std::nullopt;
    if (settings_.options->wants_logprobs) part.logprobs = std::exchange(logprobs_, {});
    return part;
}

void ChoiceText::take(text::ToolCallStream::Output output, AnswerPart& part) {
    if (!output.text.empty()) part.content = part.content.value_or("") + output.text;
    for (text::ToolCall& call : output.calls) {
        if (calls_ > 0 && !settings_.allows_parallel_calls) break;
        part.tool_calls.push_back(
            {.index = calls_++, .id = settings_.make_call_id(), .call = std::move(call)});
    }
    if (calls_ > 0 && !settings_.allows_parallel_calls) is_stopped_ = true;
}

AnswerPart ChoiceText::finish(cluster::FinishReason reason) {
    AnswerPart part = empty_part();
    if (!is_stopped_) {
        take(tools_.add(stops_.add(detokenizer_.finish())), part);
        if (!stops_.stopped()) take(tools_.add(stops_.finish()), part);
    }
    take(tools_.finish(), part);
    if (settings_.options->wants_logprobs) part.logprobs = std::exchange(logprobs_, {});
    const bool is_complete =
        reason == cluster::FinishReason::Stop || stops_.stopped() || is_stopped_;
    part.finish_reason = !is_complete ? "length" : calls_ > 0 ? "tool_calls" : "stop";
    is_stopped_ = true;
    return part;
}

AnswerLogprob ChoiceText::to_logprob(text::TokenId token, float logprob) const {
    const bool is_control = tokenizer_->is_control(token);
    return {.bytes = std::string(is_control ? tokenizer_->token_spelling(token)
                                            : tokenizer_->token_bytes(token)),
            .logprob = logprob > kLogprobMin ? logprob : kLogprobMin,
            .text_offset = 0,
            .top = {}};
}

}  // namespace artel::api
