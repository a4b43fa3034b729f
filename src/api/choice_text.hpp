// SPDX-License-Identifier: Apache-2.0
// ChoiceText: the text of one answer: tokens -> UTF-8 -> tool calls -> stop strings -> parts to
// show. Pure; knows neither clients nor the cluster. After is_stopped() it takes nothing more.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/generation_options.hpp"
#include "api/openai_response.hpp"
#include "cluster/request.hpp"
#include "text/detokenizer.hpp"
#include "text/stop_strings.hpp"
#include "text/tool_calls.hpp"

namespace artel::api {

class ChoiceText {
  public:
    struct Settings {
        std::uint32_t index = 0;
        const GenerationOptions* options = nullptr;  // must outlive this
        /// How the model writes calls; None where the request has no tools.
        text::ToolCallFormat tool_calls = text::ToolCallFormat::None;
        std::string tools_json = {};
        bool allows_parallel_calls = true;
        std::function<std::string()> make_call_id;
        std::size_t text_offset = 0;  // characters of an echoed prompt
    };
    /// Errors: InvalidArgument (stop strings).
    static Result<ChoiceText> create(const text::Tokenizer& tokenizer, Settings settings);

    /// Whether the token is the spelling of a stop string, which must not be added.
    bool names_a_stop(const cluster::Token& token) const;
    /// What may be shown now, if anything.
    std::optional<AnswerPart> add(const cluster::Token& token);
    /// The rest, with the finish_reason.
    AnswerPart finish(cluster::FinishReason reason);
    /// A stop string or the last call that the client allows is complete.
    bool is_stopped() const { return is_stopped_; }

  private:
    ChoiceText(const text::Tokenizer& tokenizer, Settings settings, text::StopStrings stops);
    std::string text_of(const cluster::Token& token);
    void take(text::ToolCallStream::Output output, AnswerPart& part);
    AnswerLogprob to_logprob(text::TokenId token, float logprob) const;
    AnswerPart empty_part() const;

    const text::Tokenizer* tokenizer_;
    Settings settings_;
    text::StreamDetokenizer detokenizer_;
    text::StopStrings stops_;
    text::ToolCallStream tools_;
    std::vector<AnswerLogprob> logprobs_;  // not shown yet
    std::size_t characters_ = 0;           // of the text so far, stop strings included
    std::uint32_t calls_ = 0;
    bool is_stopped_ = false;
};

}  // namespace artel::api
