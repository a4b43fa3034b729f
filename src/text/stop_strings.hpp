// SPDX-License-Identifier: Apache-2.0
// StopStrings: cuts a streamed text at the first of some strings. Each byte before the stop comes
// out exactly once, the stop itself and what follows never. Held back is only the longest suffix
// that could still become a stop. Of several stops the one that begins first wins, so a whole stop
// waits while an earlier one may still become whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace artel::text {

class StopStrings {
  public:
    static constexpr std::size_t kCountMax = 32;
    static constexpr std::size_t kBytesMax = 1'024;  // of one string

    /// Errors: InvalidArgument for an empty string or too many or too long ones.
    static Result<StopStrings> create(std::vector<std::string> stops);
    StopStrings() = default;  // never stops

    /// The text that may be shown now. Empty once stopped.
    std::string add(std::string_view text);
    /// The stream has ended: what was held back.
    std::string finish();
    bool stopped() const { return stopped_; }

  private:
    std::size_t first_stop() const;       // where the first whole stop begins, else the end
    std::size_t first_beginning() const;  // where a stop may have begun at the end, else the end
    std::string stop_at(std::size_t position);

    std::vector<std::string> stops_;
    std::string held_;
    bool stopped_ = false;
};

}  // namespace artel::text
