// SPDX-License-Identifier: Apache-2.0
#include "runtime/child_process.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/file.hpp"

namespace artel::runtime {
namespace {

/// A descriptor that holds `text` and reads from its start: an anonymous file, so nobody has to
/// feed a pipe.
Result<int> descriptor_with(const std::string& text) {
    const int fd = ::memfd_create("artel-inherited", MFD_CLOEXEC);
    if (fd < 0) return errno_error("making an anonymous file");
    if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::lseek(fd, 0, SEEK_SET) != 0) {
        const Error error = errno_error("filling an anonymous file");
        ::close(fd);
        return error;
    }
    return fd;
}

/// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, int inherited, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
    // A group of its own: Ctrl-C at the terminal is for the parent, which lets answers finish.
    ::setpgid(0, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) ::signal(number, SIG_DFL);
    // Asio's sockets are not close-on-exec; a child that holds them keeps connections open.
    ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    if (inherited == ChildProcess::kInheritedDescriptor)
        ::fcntl(inherited, F_SETFD, 0);
    else if (inherited >= 0)
        ::dup2(inherited, ChildProcess::kInheritedDescriptor);
    ::execv(arguments[0], arguments);
    ::_exit(127);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments,
                                         const std::optional<std::string>& inherited_text) {
    if (arguments.empty()) return invalid_argument("no program to start");
    int inherited = -1;
    if (inherited_text) {
        ARTEL_ASSIGN(inherited, descriptor_with(*inherited_text));
    }
    std::vector<char*> pointers;
    for (const std::string& argument : arguments)
        pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become(pointers.data(), inherited, parent);
    const Error error = pid < 0 ? errno_error("starting " + arguments[0]) : ok();
    if (inherited >= 0) ::close(inherited);
    if (!error.ok()) return error;
    return ChildProcess(pid);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
}

ChildProcess::~ChildProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void ChildProcess::signal(int number) {
    if (pid_ > 0) ::kill(pid_, number);
}

std::optional<std::string> ChildProcess::poll_exit() {
    if (pid_ <= 0) return std::nullopt;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = -1;
    if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
    return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace artel::runtime
