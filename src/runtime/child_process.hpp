// SPDX-License-Identifier: Apache-2.0
// ChildProcess: one program started by this one. It dies with its parent, even when the parent is
// killed (PR_SET_PDEATHSIG), and can be handed bytes through an inherited descriptor, so that
// secrets never stand on a command line. Start children from a thread that lives as long as the
// process: Linux ties the death signal to the starting thread. Not thread-safe. Destruction kills
// and reaps.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace artel::runtime {

class ChildProcess {
  public:
    /// Starts `arguments[0]` (a path; no PATH search) with the rest as its arguments. When
    /// `inherited_text` is set the child can read it from the file descriptor number
    /// kInheritedDescriptor.
    static Result<ChildProcess> start(const std::vector<std::string>& arguments,
                                      const std::optional<std::string>& inherited_text);
    static constexpr int kInheritedDescriptor = 3;

    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;
    ~ChildProcess();

    pid_t pid() const { return pid_; }
    void signal(int number);
    /// How the child ended ("exit code 1", "signal 9"), once; nothing while it runs. Never waits.
    std::optional<std::string> poll_exit();

  private:
    explicit ChildProcess(pid_t pid) : pid_(pid) {}
    pid_t pid_ = -1;  // -1: ended and reaped, or moved from
};

}  // namespace artel::runtime
