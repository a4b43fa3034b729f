// SPDX-License-Identifier: Apache-2.0
// Which of several processes wrote a log line. Apart from log.hpp, which everything includes: a
// process sets its name once, where it starts.
#pragma once

#include <string_view>

namespace artel {

/// Puts "[name]" into every log line from now on.
void set_log_name(std::string_view name);

}  // namespace artel
