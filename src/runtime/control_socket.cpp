// SPDX-License-Identifier: Apache-2.0
#include "runtime/control_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/log.hpp"

namespace artel::runtime {
namespace {

constexpr const char* kName = "control";
constexpr std::size_t kLineBytesMax = 1024;
constexpr std::size_t kAnswerBytesMax = 1 << 20;
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};  // of each read and write
constexpr std::string_view kOk = "ok\n";
constexpr std::string_view kError = "error\n";

/// The address of a socket in an open directory: a path may be longer than an address has room for.
sockaddr_un address_in(const Descriptor& directory) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = fmt::format("/proc/self/fd/{}/{}", directory.get(), kName);
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
}

Result<Descriptor> open_directory(const std::filesystem::path& path) {
    Descriptor directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() < 0) return errno_error(fmt::format("opening {}", path.string()));
    return directory;
}

Result<Descriptor> make_socket() {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) return errno_error("making a socket");
    return socket;
}

void set_deadlines(int socket) {
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
}

Result<Descriptor> connect_in(const Descriptor& directory) {
    ARTEL_ASSIGN(Descriptor socket, make_socket());
    set_deadlines(socket.get());
    const sockaddr_un address = address_in(directory);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        return errno_error("connecting");
    return socket;
}

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

/// Reads until `end` says that it is enough, the other side closes, or `max` bytes are there.
template <class End>
Result<std::string> receive(int socket, std::size_t max, End end) {
    std::string text;
    char piece[4096];
    while (text.size() < max && !end(text)) {
        const ssize_t got = ::recv(socket, piece, std::min(sizeof(piece), max - text.size()), 0);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return deadline_exceeded("no answer within {} s", kPatience.tv_sec);
        text.append(piece, static_cast<std::size_t>(got));
    }
    return text;
}

}  // namespace

Result<std::unique_ptr<ControlSocket>> ControlSocket::open(const std::filesystem::path& directory,
                                                           Handler handler) {
    ARTEL_ASSIGN(Descriptor folder, open_directory(directory));
    if (connect_in(folder).ok())
        return failed_precondition(
            "another artel serve runs with the state directory {}; stop it, or give --state-dir",
            directory.string());
    ::unlinkat(folder.get(), kName, 0);  // of one that was killed
    ARTEL_ASSIGN(Descriptor listener, make_socket());
    const sockaddr_un address = address_in(folder);
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::fchmodat(folder.get(), kName, S_IRUSR | S_IWUSR, 0) != 0 ||
        ::listen(listener.get(), 8) != 0)
        return errno_error(fmt::format("listening in {}", directory.string()));
    Descriptor stop(::eventfd(0, EFD_CLOEXEC));
    if (stop.get() < 0) return errno_error("making an event descriptor");
    return std::unique_ptr<ControlSocket>(new ControlSocket(std::move(folder), std::move(listener),
                                                            std::move(stop), std::move(handler)));
}

ControlSocket::ControlSocket(Descriptor directory, Descriptor listener, Descriptor stop,
                             Handler handler)
    : directory_(std::move(directory)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      handler_(std::move(handler)),
      thread_([this] { serve(); }) {}

ControlSocket::~ControlSocket() {
    const std::uint64_t one = 1;
    if (::write(stop_.get(), &one, sizeof(one)) != sizeof(one))
        log_error("the control socket cannot be told to stop");
    thread_.join();
    ::unlinkat(directory_.get(), kName, 0);
}

void ControlSocket::serve() {
    while (true) {
        pollfd waits[] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                          {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
        if (::poll(waits, 2, -1) < 0 && errno != EINTR) return;
        if (waits[1].revents != 0) return;
        if ((waits[0].revents & POLLIN) == 0) continue;
        const Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (client.get() >= 0) answer(client.get());
    }
}

void ControlSocket::answer(int client) {
    set_deadlines(client);
    auto line = receive(client, kLineBytesMax, [](const std::string& text) {
        return !text.empty() && text.back() == '\n';
    });
    if (!line.ok() || line->empty() || line->back() != '\n') return;
    line->pop_back();
    const Result<std::string> answer = handler_(*line);
    if (answer.ok())
        send_all(client, std::string(kOk) + *answer);
    else
        send_all(client, std::string(kError) + std::string(answer.status().message()));
}

Result<std::string> ask_control_socket(const std::filesystem::path& directory,
                                       const std::string& line) {
    const auto nobody = [&] {
        return not_found("no artel serve runs with the state directory {}; give its --state-dir",
                         directory.string());
    };
    const auto folder = open_directory(directory);
    if (!folder.ok()) return nobody();
    const auto socket = connect_in(*folder);
    if (!socket.ok()) return nobody();
    if (!send_all(socket->get(), line + "\n"))
        return deadline_exceeded("the server does not take a request");
    ARTEL_ASSIGN(const std::string answer,
                 receive(socket->get(), kAnswerBytesMax, [](const std::string&) { return false; }));
    if (answer.starts_with(kOk)) return answer.substr(kOk.size());
    if (answer.starts_with(kError)) return failed_precondition("{}", answer.substr(kError.size()));
    return data_loss("the server ended without an answer");
}

}  // namespace artel::runtime
