// SPDX-License-Identifier: Apache-2.0
// Faults: which of them a seed turns on, how often they strike, and the striking. Each seed draws a
// random subset with random rates, since turning many off finds more than having all on.
#pragma once

#include <string>

#include "simulation/simulator.hpp"

namespace artel::simulation {

enum class Fault : std::uint32_t {
    LinkHiccup,  // a connection breaks and comes back within the grace: no request may fail
    LinkJitter,  // delays vary
    SlowLink,
    CrashWorker,   // restart with empty memory, noticed or silent
    FreezeWorker,  // short (a hiccup) or long (lost)
    SlowWorker,
    DeviceError,
    Partition,  // both directions
    OneWayPartition,
    DamagedPayload,
    LoadFails,
    ClogLane,  // one lane of a link stands still: old steps arrive in a new epoch
    CrashCoordinator,
    kCount
};
const char* fault_name(Fault fault);

class Faults {
  public:
    /// Draws the subset and the rates.
    Faults(Random random, Simulator& simulator);
    /// Strikes at random times until `end`; what it breaks it mends within a few seconds.
    void start(TimePoint end);
    /// Mends all that is broken.
    void heal();
    bool is_on(Fault fault) const { return (mask_ & bit(fault)) != 0; }
    /// With only these on, no accepted request may fail.
    bool is_gentle() const;
    std::string describe() const;

  private:
    static std::uint32_t bit(Fault fault) { return 1U << static_cast<std::uint32_t>(fault); }
    void plan_next(Fault fault);
    void strike(Fault fault);
    std::size_t any_worker() {
        return 1 + static_cast<std::size_t>(random_.below(simulator_.worker_count()));
    }
    Duration between(std::int64_t low_ms, std::int64_t high_ms);

    Random random_;
    Simulator& simulator_;
    std::uint32_t mask_ = 0;
    double mean_seconds_ = 5;
    TimePoint end_{};
};

}  // namespace artel::simulation
