// SPDX-License-Identifier: Apache-2.0
#include "api/token_routes.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/field_reader.hpp"
#include "api/json_document.hpp"
#include "text/detokenizer.hpp"
#include "text/utf8.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

HttpResponse to_response(const Json& body) {
    return {.headers = {}, .body = to_text(body)};
}

HttpResponse refused_body(const Error& error) {
    return ApiError::invalid("", std::string(error.message())).to_response();
}

Json piece_of(const text::Tokenizer& tokenizer, text::TokenId id) {
    const std::string_view bytes =
        tokenizer.is_control(id) ? tokenizer.token_spelling(id) : tokenizer.token_bytes(id);
    if (text::is_valid_utf8(bytes)) return std::string(bytes);
    Json list = Json::array();
    for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
    return list;
}

std::vector<text::TokenId> read_tokens(FieldReader& fields, std::size_t vocabulary) {
    std::vector<text::TokenId> ids;
    const Json* tokens = fields.find("tokens");
    if (tokens == nullptr || !tokens->is_array()) {
        fields.fail("tokens", "must be a list of token ids");
        return ids;
    }
    for (const Json& token : *tokens) {
        if (!token.is_number_unsigned() || token.get<std::uint64_t>() >= vocabulary) {
            fields.fail("tokens", fmt::format("each must be a token id below {}", vocabulary));
            return {};
        }
        ids.push_back(token.get<text::TokenId>());
    }
    return ids;
}

}  // namespace

HttpResponse answer_tokenize(std::string_view body, const ChatModel& model) {
    const auto document = parse_object(body);
    if (!document.ok()) return refused_body(document.status());
    FieldReader fields(*document, "");
    std::string content;
    bool adds_special = false, parses_special = true, wants_pieces = false;
    if (fields.find("content") == nullptr) fields.fail("content", "must be a string");
    fields.read_string("content", content);
    fields.read_bool("add_special", adds_special);
    fields.read_bool("parse_special", parses_special);
    fields.read_bool("with_pieces", wants_pieces);
    if (const auto error = fields.take_error()) return error->to_response();
    const auto ids = model.tokenizer->tokenize(
        content, {.special = parses_special ? text::ParseSpecial::Yes : text::ParseSpecial::No,
                  .bos = adds_special ? text::AddBos::IfModelSays : text::AddBos::No});
    Json tokens = Json::array();
    for (const text::TokenId id : ids)
        tokens.push_back(wants_pieces ? Json{{"id", id}, {"piece", piece_of(*model.tokenizer, id)}}
                                      : Json(id));
    return to_response({{"tokens", std::move(tokens)}});
}

HttpResponse answer_detokenize(std::string_view body, const ChatModel& model) {
    const auto document = parse_object(body);
    if (!document.ok()) return refused_body(document.status());
    FieldReader fields(*document, "");
    const auto ids = read_tokens(fields, model.tokenizer->vocabulary_size());
    if (const auto error = fields.take_error()) return error->to_response();
    return to_response(
        {{"content",
          text::detokenize(*model.tokenizer, ids, {.starts_text = true, .shows_control = true})}});
}

HttpResponse answer_embeddings(std::string_view body, const ChatModel& model) {
    const auto document = parse_object(body);
    if (!document.ok()) return refused_body(document.status());
    FieldReader fields(*document, "");
    std::string name;
    fields.read_string("model", name);
    if (const auto error = fields.take_error()) return error->to_response();
    if (const auto error = check_model(name, model)) return error->to_response();
    ApiError error = ApiError::invalid(
        "model", fmt::format("the model '{}' writes text and gives no embeddings", model.alias));
    error.code = "unsupported_model";
    return error.to_response();
}

}  // namespace artel::api
