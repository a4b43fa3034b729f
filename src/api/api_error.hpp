// SPDX-License-Identifier: Apache-2.0
// ApiError: a refusal as OpenAI's clients know it, and the one table from Error to it.
// Only api/ knows HTTP statuses; everything below speaks of Error and typed refusals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http_message.hpp"
#include "base/result.hpp"

namespace artel::api {

struct ApiError {
    int http_status = 400;
    std::string type = "invalid_request_error";
    std::string code;   // null when empty
    std::string param;  // null when empty
    std::string message;
    std::optional<int> retry_after_seconds;

    /// {"error":{"message":..,"type":..,"param":..,"code":..}}, one line.
    std::string to_json() const;
    HttpResponse to_response() const;

    static ApiError invalid(std::string param, std::string message);
    static ApiError unsupported(std::string param, std::string message);
    static ApiError of_status(int http_status, std::string message);
};

/// The table. The message goes to the client: it must not hold what others typed.
ApiError to_api_error(const Error& error);

}  // namespace artel::api
