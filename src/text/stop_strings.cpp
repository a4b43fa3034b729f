// SPDX-License-Identifier: Apache-2.0
#include "text/stop_strings.hpp"

#include <algorithm>
#include <utility>

namespace artel::text {

Result<StopStrings> StopStrings::create(std::vector<std::string> stops) {
    if (stops.size() > kCountMax)
        return invalid_argument("stop: {} strings; at most {} are allowed", stops.size(),
                                kCountMax);
    for (const std::string& stop : stops) {
        if (stop.empty()) return invalid_argument("stop: a stop string is empty");
        if (stop.size() > kBytesMax)
            return invalid_argument("stop: a string of {} bytes; at most {} are allowed",
                                    stop.size(), kBytesMax);
    }
    StopStrings result;
    result.stops_ = std::move(stops);
    return result;
}

std::string StopStrings::add(std::string_view text) {
    if (stopped_) return {};
    held_ += text;
    const std::size_t stop = first_stop();
    const std::size_t beginning = first_beginning();
    // A stop that begins earlier but is not whole yet would win over one that is.
    if (stop < beginning) return stop_at(stop);
    std::string certain = held_.substr(0, beginning);
    held_.erase(0, beginning);
    return certain;
}

std::string StopStrings::finish() {
    if (stopped_) return {};
    if (const std::size_t stop = first_stop(); stop < held_.size()) return stop_at(stop);
    return std::exchange(held_, {});
}

std::size_t StopStrings::first_stop() const {
    std::size_t first = held_.size();
    for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
    return first;
}

std::size_t StopStrings::first_beginning() const {
    const std::string_view held = held_;
    std::size_t longest = 0;
    for (const std::string_view stop : stops_) {
        std::size_t count = std::min(stop.size() - 1, held.size());
        while (count > longest && !held.ends_with(stop.substr(0, count))) --count;
        longest = std::max(longest, count);
    }
    return held.size() - longest;
}

std::string StopStrings::stop_at(std::size_t position) {
    stopped_ = true;
    std::string text = held_.substr(0, position);
    held_.clear();
    return text;
}

}  // namespace artel::text
