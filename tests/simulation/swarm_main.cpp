// SPDX-License-Identifier: Apache-2.0
// The swarm: many seeds of the simulated cluster.
//   swarm --count 200                         seeds 0..199 must hold; every 20th runs twice and
//   must not differ swarm --count 200 --canary loses-cancels  the deliberate bug must be caught by
//   one of them swarm --first 1234 --count 1 --notes      one seed again, with all that the nodes
//   have to say
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <map>

#include "simulation/swarm.hpp"

namespace {

using namespace artel::simulation;

constexpr Canary kCanaries[] = {Canary::SkipsEpochCheck, Canary::FreesPagesTwice,
                                Canary::LosesCancels, Canary::ForgetsResend,
                                Canary::CountsALayerTwice};

void print_failure(const SeedOutcome& outcome) {
    fmt::print("seed={} {}\n", outcome.seed, outcome.options);
    for (const std::string& violation : outcome.violations) fmt::print("  {}\n", violation);
    fmt::print("  again: swarm --first {} --count 1 --notes\n", outcome.seed);
}

int run_canary(std::uint64_t first, std::uint64_t count, Canary canary) {
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const SeedOutcome outcome = run_seed(seed, {.canary = canary});
        if (outcome.violations.empty()) continue;
        fmt::print("canary {} caught by seed {} (the {}th): {}\n", canary_name(canary), seed,
                   seed - first + 1, outcome.violations.front());
        return 0;
    }
    fmt::print("canary {} was caught by none of {} seeds\n", canary_name(canary), count);
    return 1;
}

int run_sweep(std::uint64_t first, std::uint64_t count, std::uint64_t twice_every,
              bool prints_notes) {
    std::uint64_t failed = 0, events = 0, tokens = 0;
    std::map<std::string, std::uint64_t> marks;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        SeedOutcome outcome = run_seed(seed, {.prints_notes = prints_notes});
        if (twice_every > 0 && seed % twice_every == 0 &&
            run_seed(seed).trace_hash != outcome.trace_hash)
            outcome.violations.push_back("two runs of this seed differ");
        events += outcome.events;
        tokens += outcome.tokens;
        for (const std::string& mark : outcome.marks) ++marks[mark];
        if (outcome.violations.empty()) continue;
        ++failed;
        if (failed <= 10) print_failure(outcome);
    }
    for (const auto& [mark, seeds] : marks) fmt::print("reached by {:6} seeds: {}\n", seeds, mark);
    fmt::print("{} seeds, {} failed, {} events, {} tokens\n", count, failed, events, tokens);
    return failed == 0 && tokens > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"many seeds of the simulated cluster"};
    std::uint64_t first = 0, count = 200, twice_every = 20;
    std::string canary;
    bool prints_notes = false;
    app.add_option("--first", first);
    app.add_option("--count", count);
    app.add_option("--twice-every", twice_every, "run each n-th seed twice and compare; 0: never");
    app.add_option("--canary", canary, "a deliberate bug that must be caught");
    app.add_flag("--notes", prints_notes);
    CLI11_PARSE(app, argc, argv);
    if (canary.empty()) return run_sweep(first, count, twice_every, prints_notes);
    for (const Canary known : kCanaries)
        if (canary == canary_name(known)) return run_canary(first, count, known);
    fmt::print(stderr, "unknown canary '{}'\n", canary);
    return 2;
}
