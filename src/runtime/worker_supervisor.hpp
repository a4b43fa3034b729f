// SPDX-License-Identifier: Apache-2.0
// WorkerSupervisor: keeps the local workers of `artel serve` running. A worker that exits is
// started again (at once, then after 0.2 s doubling to 5 s; a minute of life makes it "at once"
// again), one that the coordinator declared lost is killed first. Driven by tick() from one thread;
// never waits, except stop() for at most the time it is given. Remote workers are restarted by
// their own service manager.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "runtime/child_process.hpp"

namespace artel::runtime {

struct LocalWorker {
    std::string name;
    std::vector<std::string> arguments;  // program path first
};

class WorkerSupervisor {
  public:
    /// `make_join_key` is asked for a fresh key at every start of the worker it is given the name
    /// of.
    WorkerSupervisor(std::vector<LocalWorker> workers,
                     std::function<std::string(const std::string&)> make_join_key);

    /// Starts what is due and notices what ended. Call about every 100 ms.
    void tick(TimePoint now);
    /// The coordinator has given this worker up; it may be frozen, so it is killed and started
    /// again.
    void declare_lost(const std::string& name);
    /// SIGTERM to all, SIGKILL to those still there after `patience`. Nothing is started
    /// afterwards.
    void stop(Duration patience);
    std::optional<pid_t> pid_of(const std::string& name) const;

  private:
    struct Slot {
        LocalWorker worker;
        std::optional<ChildProcess> child;
        TimePoint started{};
        TimePoint due{};
        Duration delay{0};
    };
    void start(Slot& slot, TimePoint now);
    void schedule_restart(Slot& slot, TimePoint now);

    std::vector<Slot> slots_;
    std::function<std::string(const std::string&)> make_join_key_;
};

}  // namespace artel::runtime
