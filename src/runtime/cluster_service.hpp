// SPDX-License-Identifier: Apache-2.0
// ClusterService: everything behind `artel serve`, `run`, `eval` and `bench`: the coordinator of
// one model and its workers. Three ways to have workers: children of this process (local_workers),
// machines that join (expect_workers), or, with neither, one worker inside this process over the
// loopback network. Use: create(), requests() for any thread, stop(). The loop's threads are its
// own.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/request.hpp"
#include "runtime/model_file.hpp"

namespace artel::runtime {

struct ClusterServiceOptions {
    std::filesystem::path model;
    std::uint32_t local_workers = 0;   // children of this process
    std::uint32_t expect_workers = 0;  // that join from elsewhere
    std::uint32_t threads = 0;         // of each local worker; 0: cores / workers
    std::string device = "cpu";        // of each local worker
    std::vector<std::uint32_t> split;
    std::uint32_t context = 0;  // 0: the largest that fits
    std::uint32_t parallel = 4;
    std::uint32_t chunk = 512;
    bool has_f32_state = false;
    std::uint32_t queued_requests_max = 256;
    std::string worker_listen = "127.0.0.1:0";
    std::filesystem::path state_dir;      // empty: a temporary one, removed at the end
    std::filesystem::path program;        // of the children: this program's path
    std::filesystem::path join_key_file;  // where to leave the join key; empty: nowhere
    std::string log_level = "info";       // of the children
};

class ClusterService {
  public:
    /// Reads the model, listens, starts workers; does not wait for them. Errors: the model, the
    /// address.
    static Result<std::unique_ptr<ClusterService>> create(const ClusterServiceOptions& options);
    ~ClusterService();

    cluster::RequestPort& requests();
    const ModelFile& model() const;
    /// For machines that join; empty without expect_workers.
    std::string join_key() const;
    /// One more key, for `uses` workers. Errors: FailedPrecondition where no worker can join.
    Result<std::string> make_join_key(std::uint32_t uses);
    /// Waits until the cluster serves. Errors: DeadlineExceeded, FailedPrecondition (it cannot:
    /// what is missing).
    Error wait_until_serving(Duration patience);
    /// Lets running requests finish for up to `patience`, then ends workers and threads.
    void stop(Duration patience);

  private:
    class Assembly;
    explicit ClusterService(std::unique_ptr<Assembly> assembly);
    std::unique_ptr<Assembly> assembly_;
};

}  // namespace artel::runtime
