// SPDX-License-Identifier: Apache-2.0
#include "simulation/swarm.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "simulation/checkers.hpp"
#include "simulation/faults.hpp"
#include "simulation/workload.hpp"

namespace artel::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SimulatorOptions draw_options(std::uint64_t seed, Random& random, Canary canary) {
    SimulatorOptions options;
    options.seed = seed;
    options.model = draw_model(random);
    options.plan.context = static_cast<std::uint32_t>(random.between(64, 700));
    options.plan.parallel = static_cast<std::uint32_t>(random.between(1, 8));
    options.plan.chunk_rows = static_cast<std::uint32_t>(random.between(1, 128));
    options.limits.queued_requests = 64;
    options.limits.sequences = options.plan.parallel;
    options.limits.chunk_rows = options.plan.chunk_rows;
    options.workers = draw_workers(random, options.model, options.plan);
    options.streams_weights = random.chance(0.3);
    options.coordinator_canaries.frees_pages_twice = canary == Canary::FreesPagesTwice;
    options.coordinator_canaries.loses_cancels = canary == Canary::LosesCancels;
    options.coordinator_canaries.forgets_resend = canary == Canary::ForgetsResend;
    options.coordinator_canaries.counts_a_layer_twice = canary == Canary::CountsALayerTwice;
    options.worker_canaries.skips_epoch_check = canary == Canary::SkipsEpochCheck;
    options.worker_canaries.forgets_resend = canary == Canary::ForgetsResend;
    return options;
}

/// Clients that ask again later when the cluster is not ready, as real ones do.
void schedule(Simulator& simulator, const TimedRequest& timed) {
    simulator.queue().after(timed.at, [&simulator, timed] {
        const std::size_t index = simulator.submit(timed.request);
        if (!timed.cancel_after) return;
        simulator.queue().after(*timed.cancel_after,
                                [&simulator, index] { simulator.cancel(index); });
    });
}

void check_every(Simulator& simulator, Duration period, TimePoint end) {
    simulator.queue().after(period, [&simulator, period, end] {
        check_always(simulator);
        if (simulator.queue().now() < end) check_every(simulator, period, end);
    });
}

}  // namespace

const char* canary_name(Canary canary) {
    switch (canary) {
        case Canary::None:
            return "none";
        case Canary::SkipsEpochCheck:
            return "skips-epoch-check";
        case Canary::FreesPagesTwice:
            return "frees-pages-twice";
        case Canary::LosesCancels:
            return "loses-cancels";
        case Canary::ForgetsResend:
            return "forgets-resend";
        case Canary::CountsALayerTwice:
            return "counts-a-layer-twice";
    }
    return "?";
}

SeedOutcome run_seed(std::uint64_t seed, const SeedOptions& run) {
    Random random(seed);
    Simulator simulator(draw_options(seed, random, run.canary));
    if (run.prints_notes)
        simulator.on_note = [](const std::string& text) { fmt::print("{}\n", text); };
    Faults faults(random.fork(), simulator);
    const SimulatorOptions& options = simulator.options();

    SeedOutcome outcome;
    outcome.seed = seed;
    outcome.options = fmt::format(
        "workers={} layers={} groups={} context={} parallel={} chunk={} streams={} faults={}",
        options.workers.size(), options.model.layers.size(), options.model.groups.size(),
        options.plan.context, options.plan.parallel, options.plan.chunk_rows,
        options.streams_weights, faults.describe());

    // A calm start: whatever follows has something to lose.
    if (!simulator.run_until([&] { return simulator.is_serving(); }, seconds(120)))
        simulator.violation("the cluster did not come up without any fault");
    const Duration span = seconds(static_cast<std::int64_t>(2 + random.below(15)));
    const TimePoint end = simulator.queue().now() + span;
    for (const TimedRequest& timed :
         draw_requests(random, options.model, options.plan.context, span))
        schedule(simulator, timed);
    check_every(simulator, milliseconds(200), end + seconds(100));
    faults.start(end);
    simulator.run_for(span);
    faults.heal();

    const auto is_quiet = [&] {
        if (!simulator.is_serving()) return false;
        for (std::size_t i = 0; i < simulator.request_count(); ++i)
            if (!simulator.request(i).is_over()) return false;
        return true;
    };
    // Twice: a late consequence of a fault (a frozen node that was given up) may still come.
    simulator.run_until(is_quiet, seconds(200));
    simulator.run_for(seconds(12));
    simulator.run_until(is_quiet, seconds(200));
    simulator.run_for(seconds(1));
    check_healed(simulator);
    check_answers(simulator, !faults.is_gentle());

    outcome.violations = simulator.violations();
    outcome.trace_hash = simulator.trace_hash();
    outcome.events = simulator.queue().events_done();
    outcome.marks = simulator.marks();
    for (std::size_t i = 0; i < simulator.request_count(); ++i)
        for (const auto& tokens : simulator.request(i).tokens) outcome.tokens += tokens.size();
    return outcome;
}

}  // namespace artel::simulation
