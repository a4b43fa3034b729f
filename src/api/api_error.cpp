// SPDX-License-Identifier: Apache-2.0
#include "api/api_error.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/json_document.hpp"

namespace artel::api {
namespace {

constexpr int kRetrySoonSeconds = 1;
constexpr int kRetryLaterSeconds = 5;

nlohmann::ordered_json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

struct Row {
    int http_status;
    std::string_view type;
    std::string_view code;
    std::optional<int> retry_after_seconds;
};

Row row_of(ErrorCode code) {
    using enum absl::StatusCode;
    if (code == kInvalidArgument || code == kOutOfRange)
        return {400, "invalid_request_error", "", {}};
    if (code == kUnimplemented) return {400, "invalid_request_error", "unsupported", {}};
    if (code == kUnauthenticated) return {401, "authentication_error", "invalid_api_key", {}};
    if (code == kPermissionDenied) return {403, "permission_error", "permission_denied", {}};
    if (code == kNotFound) return {404, "invalid_request_error", "not_found", {}};
    if (code == kResourceExhausted)
        return {429, "rate_limit_error", "queue_full", kRetrySoonSeconds};
    if (code == kFailedPrecondition) return {503, "server_error", "not_ready", kRetryLaterSeconds};
    if (code == kUnavailable || code == kAborted || code == kCancelled)
        return {503, "server_error", "unavailable", kRetryLaterSeconds};
    if (code == kDeadlineExceeded) return {504, "server_error", "timeout", {}};
    return {500, "server_error", "internal_error", {}};
}

}  // namespace

std::string ApiError::to_json() const {
    return to_text({{"error",
                     {{"message", message},
                      {"type", type},
                      {"param", text_or_null(param)},
                      {"code", text_or_null(code)}}}});
}

HttpResponse ApiError::to_response() const {
    HttpResponse response{.status = http_status, .headers = {}, .body = to_json()};
    if (retry_after_seconds)
        response.headers.push_back({"Retry-After", std::to_string(*retry_after_seconds)});
    if (http_status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
    return response;
}

ApiError ApiError::invalid(std::string param, std::string message) {
    ApiError error;
    error.param = std::move(param);
    error.message = std::move(message);
    return error;
}

ApiError ApiError::unsupported(std::string param, std::string message) {
    ApiError error = invalid(std::move(param), std::move(message));
    error.code = "unsupported_parameter";
    return error;
}

ApiError ApiError::of_status(int http_status, std::string message) {
    ApiError error;
    error.http_status = http_status;
    error.message = std::move(message);
    if (http_status >= 500) error.type = "server_error";
    if (http_status == 429 || http_status == 503) error.retry_after_seconds = kRetrySoonSeconds;
    return error;
}

ApiError to_api_error(const Error& error) {
    const Row row = row_of(error.code());
    ApiError api;
    api.http_status = row.http_status;
    api.type = row.type;
    api.code = row.code;
    api.message = std::string(error.message());
    api.retry_after_seconds = row.retry_after_seconds;
    return api;
}

}  // namespace artel::api
