// SPDX-License-Identifier: Apache-2.0
// What must hold of a simulated cluster. check_always() at any moment; check_healed() once the
// faults are over and the cluster had time to recover. Findings go to Simulator::violation().
#pragma once

#include "simulation/simulator.hpp"

namespace artel::simulation {

/// Tokens are a prefix of the oracle's; queues keep their limits; each layer of the plan is held by
/// exactly one worker of the epoch while the cluster serves; a cancelled request ends soon.
void check_always(Simulator& simulator);
/// Every accepted request is over; no page is in use; the cluster serves.
void check_healed(Simulator& simulator);
/// Whole answers: a finished choice has all the oracle's tokens up to its end.
void check_answers(Simulator& simulator, bool may_fail);

}  // namespace artel::simulation
