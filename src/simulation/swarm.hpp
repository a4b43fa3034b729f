// SPDX-License-Identifier: Apache-2.0
// One seed of the swarm: a cluster, requests and faults drawn from it, run through faults, healing
// and quiet, checked all along. The seed and the canary are all that is needed to see a failure
// again.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace artel::simulation {

enum class Canary : std::uint8_t {
    None,
    SkipsEpochCheck,
    FreesPagesTwice,
    LosesCancels,
    ForgetsResend,
    CountsALayerTwice,
};
const char* canary_name(Canary canary);

struct SeedOutcome {
    std::uint64_t seed = 0;
    std::string options;                  // "workers=3 layers=17 faults=..."
    std::vector<std::string> violations;  // empty: all held
    std::uint64_t trace_hash = 0;
    std::uint64_t events = 0;
    std::uint64_t tokens = 0;
    std::set<std::string, std::less<>> marks;
};

struct SeedOptions {
    Canary canary = Canary::None;
    bool prints_notes = false;  // of all nodes, to stdout
};
SeedOutcome run_seed(std::uint64_t seed, const SeedOptions& options = {});

}  // namespace artel::simulation
