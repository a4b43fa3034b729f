// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.hpp"

#include <sys/resource.h>

#include <csignal>
#include <ctime>

namespace artel::cli {
namespace {

sigset_t stop_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    return signals;
}

}  // namespace

void block_stop_signals() {
    const sigset_t signals = stop_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
}

bool stop_was_asked(std::chrono::milliseconds patience) {
    const sigset_t signals = stop_signals();
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (sigismember(&blocked, SIGTERM) == 0) return true;  // one came earlier
    const timespec wait{patience.count() / 1000, (patience.count() % 1000) * 1'000'000};
    if (sigtimedwait(&signals, nullptr, &wait) <= 0) return false;
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    return true;
}

void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace artel::cli
