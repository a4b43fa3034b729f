// SPDX-License-Identifier: Apache-2.0
// Structured log lines: a message and named fields, e.g. log_info("worker joined", {{"name",
// name}}). Lines go to stderr through spdlog; never put prompts, generated text, keys or join keys
// in a field. Thread-safe. Not used in cluster/, protocol/ and simulation/ (they report events to
// their environment).
#pragma once

#include <fmt/core.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"

namespace artel {

enum class LogLevel { Trace, Debug, Info, Warning, Failure, Off };

struct LogField {
    std::string_view name;
    std::string value;
    template <class T>
    LogField(std::string_view field_name, const T& field_value)
        : name(field_name), value(fmt::format("{}", field_value)) {}
};
using LogFields = std::initializer_list<LogField>;

/// "trace", "debug", "info", "warning", "error" or "off".
Result<LogLevel> parse_log_level(std::string_view text);
void set_log_level(LogLevel level);
void log_line(LogLevel level, std::string_view message, LogFields fields = {});

inline void log_debug(std::string_view message, LogFields fields = {}) {
    log_line(LogLevel::Debug, message, fields);
}
inline void log_info(std::string_view message, LogFields fields = {}) {
    log_line(LogLevel::Info, message, fields);
}
inline void log_warning(std::string_view message, LogFields fields = {}) {
    log_line(LogLevel::Warning, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) {
    log_line(LogLevel::Failure, message, fields);
}

}  // namespace artel
