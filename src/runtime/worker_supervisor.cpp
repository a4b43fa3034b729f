// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker_supervisor.hpp"

#include <algorithm>
#include <csignal>
#include <thread>

#include "base/log.hpp"

namespace artel::runtime {
namespace {

using std::chrono::milliseconds;
constexpr Duration kFirstDelay = milliseconds(200);
constexpr Duration kDelayMax = std::chrono::seconds(5);
constexpr Duration kLongLife = std::chrono::minutes(1);

}  // namespace

WorkerSupervisor::WorkerSupervisor(std::vector<LocalWorker> workers,
                                   std::function<std::string(const std::string&)> make_join_key)
    : make_join_key_(std::move(make_join_key)) {
    for (LocalWorker& worker : workers)
        slots_.push_back({std::move(worker), {}, {}, {}, Duration::zero()});
}

void WorkerSupervisor::tick(TimePoint now) {
    for (Slot& slot : slots_) {
        if (slot.child) {
            const auto how = slot.child->poll_exit();
            if (!how) continue;
            slot.child.reset();
            log_warning("local worker ended", {{"worker", slot.worker.name}, {"how", *how}});
            schedule_restart(slot, now);
        }
        if (now >= slot.due) start(slot, now);
    }
}

void WorkerSupervisor::schedule_restart(Slot& slot, TimePoint now) {
    if (now - slot.started >= kLongLife) slot.delay = Duration::zero();
    slot.due = now + slot.delay;
    slot.delay = slot.delay == Duration::zero() ? kFirstDelay : std::min(slot.delay * 2, kDelayMax);
}

void WorkerSupervisor::start(Slot& slot, TimePoint now) {
    slot.started = now;
    auto child = ChildProcess::start(slot.worker.arguments, make_join_key_(slot.worker.name));
    if (!child.ok()) {
        log_error("local worker did not start",
                  {{"worker", slot.worker.name}, {"error", std::string(child.status().message())}});
        schedule_restart(slot, now);
        return;
    }
    log_info("local worker started", {{"worker", slot.worker.name}, {"pid", child->pid()}});
    slot.child.emplace(*std::move(child));
}

void WorkerSupervisor::declare_lost(const std::string& name) {
    for (Slot& slot : slots_)
        if (slot.worker.name == name && slot.child) slot.child->signal(SIGKILL);
}

void WorkerSupervisor::stop(Duration patience) {
    for (Slot& slot : slots_)
        if (slot.child) slot.child->signal(SIGTERM);
    const auto pause = milliseconds(10);
    for (Duration waited{0}; waited < patience; waited += pause) {
        const bool all_ended = std::all_of(slots_.begin(), slots_.end(), [](Slot& slot) {
            if (slot.child && slot.child->poll_exit()) slot.child.reset();
            return !slot.child;
        });
        if (all_ended) break;
        std::this_thread::sleep_for(pause);
    }
    slots_.clear();  // ChildProcess kills and reaps what is left
}

std::optional<pid_t> WorkerSupervisor::pid_of(const std::string& name) const {
    for (const Slot& slot : slots_)
        if (slot.worker.name == name && slot.child) return slot.child->pid();
    return std::nullopt;
}

}  // namespace artel::runtime
