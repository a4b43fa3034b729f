// SPDX-License-Identifier: Apache-2.0
#include "text/template_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "text/template_worker.hpp"  // made from template_worker.py at build time

namespace artel::text {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

Error child_gone() {
    return unavailable("the process that renders chat templates has ended");
}

/// Starts Python on the embedded script with `socket` as its input and output.
Result<pid_t> spawn_python(int socket) {
    std::string script(kTemplateWorker);
    std::array<char*, 5> arguments = {const_cast<char*>(kPython), const_cast<char*>("-I"),
                                      const_cast<char*>("-c"), script.data(), nullptr};
    std::array<char*, 2> environment = {const_cast<char*>("LANG=C.UTF-8"), nullptr};

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // Asio's sockets are not close-on-exec; a child that holds them keeps connections open.
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    // The program may have blocked or ignored signals; the child must not inherit that.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    for (const int signal : {SIGTERM, SIGPIPE, SIGXCPU}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

    pid_t pid = 0;
    const int failed =
        posix_spawn(&pid, kPython, &actions, &attributes, arguments.data(), environment.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return unavailable("chat templates need {} with jinja2, and it could not be started: {}",
                           kPython, std::strerror(failed));
    return pid;
}

}  // namespace

Error TemplateChild::start() {
    kill();
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
        return unavailable("socketpair for the chat template process: {}", std::strerror(errno));
    const auto pid = spawn_python(sockets[1]);
    close(sockets[1]);
    if (!pid.ok()) {
        close(sockets[0]);
        return pid.status();
    }
    pid_ = *pid;
    socket_ = sockets[0];
    return ok();
}

void TemplateChild::kill() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    pid_ = 0;
}

Result<std::string> TemplateChild::exchange(std::string_view body, std::size_t answer_bytes_max,
                                            std::chrono::milliseconds limit) {
    if (!is_running()) return child_gone();
    const TimePoint deadline = std::chrono::steady_clock::now() + limit;
    const auto run = [&]() -> Result<std::string> {
        const auto count = static_cast<std::uint32_t>(body.size());
        std::string frame(reinterpret_cast<const char*>(&count), sizeof(count));
        frame += body;
        ARTEL_TRY(send_all(frame, deadline));
        std::uint32_t answer_bytes = 0;
        ARTEL_TRY(receive_all(reinterpret_cast<char*>(&answer_bytes), 4, deadline));
        if (answer_bytes > answer_bytes_max)
            return data_loss("the chat template process announces {} bytes; at most {}",
                             answer_bytes, answer_bytes_max);
        std::string answer(answer_bytes, '\0');
        ARTEL_TRY(receive_all(answer.data(), answer.size(), deadline));
        return answer;
    };
    Result<std::string> answer = run();
    if (!answer.ok()) kill();
    return answer;
}

Error TemplateChild::wait_for(short events, TimePoint deadline) {
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0)
            return deadline_exceeded("the chat template took too long and was stopped");
        pollfd watched{socket_, events, 0};
        const int ready = poll(&watched, 1, static_cast<int>(std::min<long>(left.count(), 60'000)));
        if (ready > 0) return ok();
        if (ready < 0 && errno != EINTR) return child_gone();
    }
}

Error TemplateChild::send_all(std::string_view bytes, TimePoint deadline) {
    while (!bytes.empty()) {
        ARTEL_TRY(wait_for(POLLOUT, deadline));
        const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) return child_gone();
        if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return ok();
}

Error TemplateChild::receive_all(char* bytes, std::size_t count, TimePoint deadline) {
    while (count > 0) {
        ARTEL_TRY(wait_for(POLLIN, deadline));
        const ssize_t got = recv(socket_, bytes, count, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return child_gone();
        if (got > 0) {
            bytes += got;
            count -= static_cast<std::size_t>(got);
        }
    }
    return ok();
}

}  // namespace artel::text
