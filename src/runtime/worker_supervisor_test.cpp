// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker_supervisor.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace artel::runtime {
namespace {

using std::chrono::milliseconds;

/// Virtual time: the supervisor's decisions use only what tick() is given.
TimePoint at(int ms) {
    return TimePoint(milliseconds(ms));
}

/// Ticks at one virtual moment until `condition` holds; the processes themselves need real time.
template <class Condition>
bool tick_until(WorkerSupervisor& supervisor, TimePoint now, Condition condition) {
    for (int i = 0; i < 500; ++i) {
        supervisor.tick(now);
        if (condition()) return true;
        std::this_thread::sleep_for(milliseconds(10));
    }
    return false;
}

std::string no_key(const std::string&) {
    return "";
}

TEST(WorkerSupervisor, RestartsAnExitedWorkerAtOnceThenWithGrowingDelay) {
    WorkerSupervisor supervisor({{"w0", {"/bin/false"}}}, no_key);
    const auto running = [&] { return supervisor.pid_of("w0").has_value(); };
    const auto ended = [&] { return !running(); };
    supervisor.tick(at(0));
    ASSERT_TRUE(running());
    // The first end is answered at once, so between two ticks the slot never looks empty: look at
    // pids.
    const pid_t first = *supervisor.pid_of("w0");
    ASSERT_TRUE(tick_until(supervisor, at(0), [&] { return supervisor.pid_of("w0") != first; }));
    ASSERT_TRUE(tick_until(supervisor, at(0), ended));  // second end: due 200 ms later
    supervisor.tick(at(199));
    EXPECT_FALSE(running());
    supervisor.tick(at(200));
    EXPECT_TRUE(running());
    ASSERT_TRUE(tick_until(supervisor, at(200), ended));  // third: 400 ms
    supervisor.tick(at(599));
    EXPECT_FALSE(running());
    supervisor.tick(at(600));
    EXPECT_TRUE(running());
}

TEST(WorkerSupervisor, AFrozenWorkerDeclaredLostIsKilledAndReplaced) {
    WorkerSupervisor supervisor({{"w0", {"/bin/sleep", "60"}}}, no_key);
    supervisor.tick(at(0));
    const pid_t first = *supervisor.pid_of("w0");
    ::kill(first, SIGSTOP);
    supervisor.declare_lost("w0");
    EXPECT_TRUE(tick_until(supervisor, at(10), [&] {
        const auto pid = supervisor.pid_of("w0");
        return pid && *pid != first;
    }));
    supervisor.stop(milliseconds(2000));
}

TEST(WorkerSupervisor, ChildReadsTheJoinKeyFromTheInheritedDescriptor) {
    std::string dir = (std::filesystem::temp_directory_path() / "artel-supervisor-XXXXXX").string();
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    const std::string out = dir + "/seen";
    WorkerSupervisor supervisor({{"w0", {"/bin/sh", "-c", "cat <&3 > " + out + "; exec sleep 60"}}},
                                [](const std::string& name) { return "key-of-" + name; });
    supervisor.tick(at(0));
    const auto seen = [&] {
        std::ifstream file(out);
        std::string text;
        std::getline(file, text);
        return text;
    };
    EXPECT_TRUE(tick_until(supervisor, at(0), [&] { return seen() == "key-of-w0"; }));
    const pid_t pid = *supervisor.pid_of("w0");
    supervisor.stop(milliseconds(2000));
    EXPECT_NE(::kill(pid, 0), 0) << "the child outlived stop()";
    std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace artel::runtime
