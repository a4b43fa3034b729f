// SPDX-License-Identifier: Apache-2.0
// What a running `artel serve` answers to `artel status` and `artel key`.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cluster_service.hpp"
#include "runtime/control_socket.hpp"

namespace artel::cli {

class ServeControl {
  public:
    /// Listens in `state_dir`, which it makes. Errors: another server runs with that directory.
    static Result<std::unique_ptr<ServeControl>> open(const std::filesystem::path& state_dir);
    /// From now on it answers for `service`, until detach().
    void attach(runtime::ClusterService& service);
    void detach();

  private:
    ServeControl() = default;
    Result<std::string> answer(const std::string& line);

    std::mutex mutex_;
    runtime::ClusterService* service_ = nullptr;  // while it is up
    std::unique_ptr<runtime::ControlSocket> socket_;
};

}  // namespace artel::cli
