// SPDX-License-Identifier: Apache-2.0
// The routes that need only the model's vocabulary: POST /tokenize and /detokenize (with the field
// names of llama.cpp's server), and POST /v1/embeddings, which no model served here can answer.
// Slow for huge bodies: they run on the WorkPool.
#pragma once

#include <string_view>

#include "api/http_message.hpp"
#include "api/preparation.hpp"

namespace artel::api {

/// {"content": TEXT, "add_special": false, "parse_special": true, "with_pieces": false} ->
/// {"tokens": [...]}: ids, or {"id", "piece"} where a piece that is no text is a list of bytes.
HttpResponse answer_tokenize(std::string_view body, const ChatModel& model);
/// {"tokens": [...]} -> {"content": TEXT}
HttpResponse answer_detokenize(std::string_view body, const ChatModel& model);
HttpResponse answer_embeddings(std::string_view body, const ChatModel& model);

}  // namespace artel::api
