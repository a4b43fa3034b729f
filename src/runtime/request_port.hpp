// SPDX-License-Identifier: Apache-2.0
// LoopRequestPort: cluster::RequestPort for other threads. Calls hop to the loop, where the
// coordinator lives; health() answers from a snapshot, so it never waits for the loop.
#pragma once

#include <atomic>
#include <mutex>

#include "cluster/coordinator.hpp"
#include "cluster/request.hpp"
#include "runtime/event_loop.hpp"

namespace artel::runtime {

class LoopRequestPort : public cluster::RequestPort {
  public:
    /// Both must live until the loop has stopped.
    LoopRequestPort(EventLoop& loop, cluster::Coordinator& coordinator)
        : loop_(loop), coordinator_(coordinator) {}

    cluster::RequestId submit(cluster::Request request,
                              std::shared_ptr<cluster::RequestSink> sink) override;
    void cancel(cluster::RequestId id) override;
    cluster::Health health() const override;
    /// Takes a new snapshot. On the loop: at each change, and now and then for the counters.
    void refresh();

  private:
    EventLoop& loop_;
    cluster::Coordinator& coordinator_;
    std::atomic<std::uint64_t> last_id_{0};
    mutable std::mutex mutex_;
    cluster::Health snapshot_;
};

}  // namespace artel::runtime
