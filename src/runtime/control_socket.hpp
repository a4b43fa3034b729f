// SPDX-License-Identifier: Apache-2.0
// ControlSocket: how commands on the same machine (`artel status`, `artel key`) talk to a running
// `artel serve`: a Unix socket in its state directory, which only its user may open. A client sends
// one line and gets "ok\n" or "error\n" and a text. One client at a time, each with a deadline.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace artel::runtime {

class ControlSocket {
  public:
    /// Answers one line (without its end). Called on the socket's own thread.
    using Handler = std::function<Result<std::string>(const std::string& line)>;

    /// Listens in `directory`. Errors: FailedPrecondition when another process answers there.
    static Result<std::unique_ptr<ControlSocket>> open(const std::filesystem::path& directory,
                                                       Handler handler);
    ~ControlSocket();
    ControlSocket(const ControlSocket&) = delete;
    ControlSocket& operator=(const ControlSocket&) = delete;

  private:
    ControlSocket(Descriptor directory, Descriptor listener, Descriptor stop, Handler handler);
    void serve();
    void answer(int client);

    Descriptor directory_, listener_;
    Descriptor stop_;  // readable: the thread ends
    Handler handler_;
    std::thread thread_;
};

/// Sends `line` to the process that listens in `directory` and gives its answer. Errors: NotFound
/// when none does, the error it answers with, DeadlineExceeded.
Result<std::string> ask_control_socket(const std::filesystem::path& directory,
                                       const std::string& line);

}  // namespace artel::runtime
