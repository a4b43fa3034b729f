// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "base/log_name.hpp"

namespace artel {
namespace {

spdlog::logger& logger() {
    static const auto instance = [] {
        auto made = std::make_shared<spdlog::logger>(
            "artel", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
        made->flush_on(spdlog::level::info);
        return made;
    }();
    return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
    switch (level) {
        case LogLevel::Trace:
            return spdlog::level::trace;
        case LogLevel::Debug:
            return spdlog::level::debug;
        case LogLevel::Info:
            return spdlog::level::info;
        case LogLevel::Warning:
            return spdlog::level::warn;
        case LogLevel::Failure:
            return spdlog::level::err;
        case LogLevel::Off:
            return spdlog::level::off;
    }
    return spdlog::level::info;
}

/// A value with spaces, quotes or control bytes is quoted, so that a line stays one line.
void append_value(std::string& line, std::string_view value) {
    const bool is_plain = !value.empty() &&
                          value.find_first_of(" \"\\=") == std::string_view::npos &&
                          std::string_view::npos == value.find_first_of("\n\r\t");
    if (is_plain) {
        line += value;
        return;
    }
    line += '"';
    for (const char c : value) {
        if (c == '"' || c == '\\') line += '\\';
        if (c == '\n')
            line += "\\n";
        else if (static_cast<unsigned char>(c) < 0x20)
            line += '?';
        else
            line += c;
    }
    line += '"';
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
    constexpr std::pair<std::string_view, LogLevel> kNames[] = {
        {"trace", LogLevel::Trace},     {"debug", LogLevel::Debug},   {"info", LogLevel::Info},
        {"warning", LogLevel::Warning}, {"error", LogLevel::Failure}, {"off", LogLevel::Off}};
    for (const auto& [name, level] : kNames)
        if (name == text) return level;
    return invalid_argument(
        "unknown log level '{}'; expected trace, debug, info, warning, error or off", text);
}

void set_log_level(LogLevel level) {
    logger().set_level(to_spdlog(level));
}

void set_log_name(std::string_view name) {
    std::string quoted;  // a % would be a pattern's
    for (const char c : name) quoted += c == '%' ? std::string("%%") : std::string(1, c);
    logger().set_pattern("%Y-%m-%dT%H:%M:%S.%e %l [" + quoted + "] %v");
}

void log_line(LogLevel level, std::string_view message, LogFields fields) {
    const auto wanted = to_spdlog(level);
    if (!logger().should_log(wanted)) return;
    std::string line(message);
    for (const LogField& field : fields) {
        line += ' ';
        line += field.name;
        line += '=';
        append_value(line, field.value);
    }
    logger().log(wanted, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace artel
