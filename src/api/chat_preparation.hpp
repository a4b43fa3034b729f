// SPDX-License-Identifier: Apache-2.0
// From the body of a chat request to what the cluster needs: parse, render, tokenise, check against
// the context. Slow (milliseconds to seconds for huge bodies): runs on the WorkPool. Nothing is
// computed by the model before all of it has passed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "api/api_error.hpp"
#include "api/openai_request.hpp"
#include "cluster/request.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace artel::api {

/// The text side of the served model. Used by several threads at once.
struct ChatModel {
    std::string alias;  // its name in the API
    const text::Tokenizer* tokenizer = nullptr;
    /// ChatTemplate::render; empty when the model has no chat template.
    std::function<Result<text::RenderedPrompt>(const text::RenderRequest&)> render;
};

struct PreparedChat {
    ChatRequest chat;
    cluster::Request request;
};

/// `context`: tokens of prompt and answer together, 0 when not known yet (the cluster checks too).
std::variant<PreparedChat, ApiError> prepare_chat(std::string_view body, const ChatModel& model,
                                                  std::uint32_t context);

ApiError prompt_too_long(std::uint64_t prompt_tokens, std::uint32_t context);
/// What the cluster did not take, as the client is told.
ApiError to_api_error(const cluster::Refusal& refusal);
/// Why an answer ended before its time.
ApiError to_api_error(const cluster::RequestFailure& failure);

}  // namespace artel::api
