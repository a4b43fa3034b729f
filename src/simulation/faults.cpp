// SPDX-License-Identifier: Apache-2.0
#include "simulation/faults.hpp"

#include <cmath>

namespace artel::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
constexpr auto kFaultCount = static_cast<std::uint32_t>(Fault::kCount);

}  // namespace

const char* fault_name(Fault fault) {
    switch (fault) {
        case Fault::LinkHiccup:
            return "link-hiccup";
        case Fault::LinkJitter:
            return "link-jitter";
        case Fault::SlowLink:
            return "slow-link";
        case Fault::CrashWorker:
            return "crash-worker";
        case Fault::FreezeWorker:
            return "freeze-worker";
        case Fault::SlowWorker:
            return "slow-worker";
        case Fault::DeviceError:
            return "device-error";
        case Fault::Partition:
            return "partition";
        case Fault::OneWayPartition:
            return "one-way-partition";
        case Fault::DamagedPayload:
            return "damaged-payload";
        case Fault::LoadFails:
            return "load-fails";
        case Fault::ClogLane:
            return "clog-lane";
        case Fault::CrashCoordinator:
            return "crash-coordinator";
        case Fault::kCount:
            break;
    }
    return "?";
}

Faults::Faults(Random random, Simulator& simulator) : random_(random), simulator_(simulator) {
    const double density = random_.unit();
    for (std::uint32_t i = 0; i < kFaultCount; ++i)
        if (random_.chance(density * 0.8)) mask_ |= 1U << i;
    if (random_.chance(0.2))
        mask_ &= bit(Fault::LinkHiccup) | bit(Fault::LinkJitter) | bit(Fault::SlowLink);
    mean_seconds_ = 0.5 + random_.unit() * 6;
}

bool Faults::is_gentle() const {
    return (mask_ & ~(bit(Fault::LinkHiccup) | bit(Fault::LinkJitter) | bit(Fault::SlowLink) |
                      bit(Fault::DamagedPayload))) == 0;
}

std::string Faults::describe() const {
    std::string text;
    for (std::uint32_t i = 0; i < kFaultCount; ++i)
        if ((mask_ & (1U << i)) != 0)
            text += std::string(text.empty() ? "" : ",") + fault_name(static_cast<Fault>(i));
    return text.empty() ? "none" : text;
}

Duration Faults::between(std::int64_t low_ms, std::int64_t high_ms) {
    return milliseconds(random_.between(low_ms, high_ms));
}

void Faults::start(TimePoint end) {
    end_ = end;
    if (is_on(Fault::LinkJitter)) {
        LinkQuality quality;
        quality.jitter = microseconds(random_.between(10, 20000));
        simulator_.network().set_default_quality(quality);
    }
    for (std::uint32_t i = 0; i < kFaultCount; ++i)
        if (is_on(static_cast<Fault>(i))) plan_next(static_cast<Fault>(i));
}

void Faults::plan_next(Fault fault) {
    const double wait = -std::log(1 - random_.unit()) * mean_seconds_;
    const Duration delay(static_cast<std::int64_t>(wait * 1e9) + 1);
    if (simulator_.queue().now() + delay >= end_) return;
    simulator_.queue().after(delay, [this, fault] {
        strike(fault);
        plan_next(fault);
    });
}

void Faults::strike(Fault fault) {
    Simulator& sim = simulator_;
    EventQueue& queue = sim.queue();
    const std::size_t worker = any_worker();
    switch (fault) {
        case Fault::LinkHiccup: {
            const auto links = sim.network().links();
            if (links.empty()) return;
            const auto& [a, b] = links[random_.below(links.size())];
            return sim.network().break_link(a, b);
        }
        case Fault::LinkJitter:
            return;
        case Fault::SlowLink: {
            const auto links = sim.network().links();
            if (links.empty()) return;
            const auto& [a, b] = links[random_.below(links.size())];
            LinkQuality quality;
            quality.latency = microseconds(random_.between(100, 50000));
            quality.bytes_per_second =
                static_cast<std::uint64_t>(random_.between(1, 1000)) * 1'000'000;
            return sim.network().set_quality(a, b, quality);
        }
        case Fault::CrashWorker:
            sim.crash(worker, random_.chance(0.7));
            return queue.after(between(10, 8000), [&sim, worker] { sim.restart(worker); });
        case Fault::FreezeWorker:
            sim.freeze(worker);
            return queue.after(between(10, 9000), [&sim, worker] { sim.wake(worker); });
        case Fault::SlowWorker:
            sim.device(worker).slowdown = 10;
            return queue.after(between(1000, 10000),
                               [&sim, worker] { sim.device(worker).slowdown = 1; });
        case Fault::DeviceError:
            sim.device(worker).fails_next_step = true;
            return;
        case Fault::Partition:
        case Fault::OneWayPartition: {
            const std::size_t other =
                static_cast<std::size_t>(random_.below(sim.worker_count() + 1));
            if (other == worker) return;
            sim.network().block(sim.id(worker), sim.id(other));
            if (fault == Fault::Partition) sim.network().block(sim.id(other), sim.id(worker));
            return queue.after(between(100, 9000), [&sim] { sim.network().unblock_all(); });
        }
        case Fault::DamagedPayload:
            return sim.network().damage_next_payload();
        case Fault::LoadFails:
            sim.disk(worker).fails_next_load = true;
            return;
        case Fault::ClogLane: {
            const auto links = sim.network().links();
            if (links.empty()) return;
            const auto& [a, b] = links[random_.below(links.size())];
            const auto lane =
                random_.chance(0.5) ? protocol::Lane::Decode : protocol::Lane::Prefill;
            const bool is_forward = random_.chance(0.5);
            sim.network().clog(is_forward ? a : b, is_forward ? b : a, lane, between(200, 3500));
            // Half of the time the epoch ends meanwhile, which is what makes the held steps old.
            if (random_.chance(0.5)) sim.device(worker).fails_next_step = true;
            return;
        }
        case Fault::CrashCoordinator:
            sim.crash(0, random_.chance(0.7));
            return queue.after(between(10, 5000), [&sim] { sim.restart(0); });
        case Fault::kCount:
            return;
    }
}

void Faults::heal() {
    simulator_.network().unblock_all();
    simulator_.network().set_default_quality({});
    for (std::size_t node = 0; node <= simulator_.worker_count(); ++node) {
        simulator_.wake(node);
        simulator_.restart(node);
        simulator_.device(node).slowdown = 1;
        simulator_.device(node).fails_next_step = false;
        simulator_.disk(node).fails_next_load = false;
    }
}

}  // namespace artel::simulation
