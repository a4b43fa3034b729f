// SPDX-License-Identifier: Apache-2.0
// From the body of a completion request to what the cluster needs: parse, render, tokenise, check
// against the context. Slow (milliseconds to seconds for huge bodies): runs on the WorkPool.
// Nothing is computed by the model before all of it has passed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/api_error.hpp"
#include "api/generation_options.hpp"
#include "cluster/request.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"
#include "text/tool_calls.hpp"

namespace artel::api {

/// The text side of the served model. Used by several threads at once.
struct ChatModel {
    std::string alias;  // its name in the API
    const text::Tokenizer* tokenizer = nullptr;
    /// ChatTemplate::render; empty when the model has no chat template that works.
    std::function<Result<text::RenderedPrompt>(const text::RenderRequest&)> render;
    std::string no_chat_reason = {};  // then
    text::ToolCallFormat tool_calls = text::ToolCallFormat::None;
};

struct PreparedCompletion {
    GenerationOptions options;
    std::vector<cluster::Request> requests;  // one a choice, in their order
    std::vector<std::string> echoes;         // of each choice: text to show before the answer
    std::uint64_t prompt_tokens = 0;         // each prompt counted once
    std::string tools_json;                  // with tool calls to be read from the answer
    text::ToolCallFormat tool_calls = text::ToolCallFormat::None;
    bool allows_parallel_calls = true;
};

/// `context`: tokens of prompt and answer together, 0 when not known yet (the cluster checks too).
std::variant<PreparedCompletion, ApiError> prepare_chat(std::string_view body,
                                                        const ChatModel& model,
                                                        std::uint32_t context);
std::variant<PreparedCompletion, ApiError> prepare_text(std::string_view body,
                                                        const ChatModel& model,
                                                        std::uint32_t context);

/// A `model` that is not the served one: 404. Nothing if it is.
std::optional<ApiError> check_model(const std::string& name, const ChatModel& model);
/// `bound`: "at least " before a number that is only a bound.
ApiError prompt_too_long(std::uint64_t prompt_tokens, std::uint32_t context,
                         std::string_view bound = "");
/// What the cluster did not take, as the client is told.
ApiError to_api_error(const cluster::Refusal& refusal);
/// Why an answer ended before its time.
ApiError to_api_error(const cluster::RequestFailure& failure);

}  // namespace artel::api
