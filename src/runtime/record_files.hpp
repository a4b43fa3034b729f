// SPDX-License-Identifier: Apache-2.0
// RecordFiles: the small records of cluster::Storage::put as files STATE_DIR/KEY, written so that
// they outlive a power cut. Writing happens on a thread of its own (fsync may take long); answers
// come on the loop.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/environment.hpp"
#include "runtime/event_loop.hpp"
#include "runtime/serial_thread.hpp"

namespace artel::runtime {

class RecordFiles {
  public:
    RecordFiles(EventLoop& loop, std::filesystem::path state_dir)
        : loop_(loop), state_dir_(std::move(state_dir)) {}

    /// `done` is called on the loop.
    void put(const std::string& key, std::vector<std::byte> record,
             std::function<void(cluster::RecordStored)> done);
    /// The epoch record under `key`; {0, 0} when there is none. Errors: a damaged record says what
    /// to do.
    static Result<cluster::Epoch> read_epoch(const std::filesystem::path& state_dir,
                                             const std::string& key);

  private:
    EventLoop& loop_;
    std::filesystem::path state_dir_;
    SerialThread thread_;
};

}  // namespace artel::runtime
