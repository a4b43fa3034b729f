// SPDX-License-Identifier: Apache-2.0
#include "runtime/request_port.hpp"

namespace artel::runtime {

cluster::RequestId LoopRequestPort::submit(cluster::Request request,
                                           std::shared_ptr<cluster::RequestSink> sink) {
    const cluster::RequestId id{++last_id_};
    loop_.post([this, id, request = std::move(request), sink = std::move(sink)]() mutable {
        const auto refusal = coordinator_.submit(id, std::move(request), sink);
        if (refusal) sink->on_refused(*refusal);
    });
    return id;
}

void LoopRequestPort::cancel(cluster::RequestId id) {
    loop_.post([this, id] { coordinator_.cancel(id); });
}

cluster::Health LoopRequestPort::health() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
}

void LoopRequestPort::refresh() {
    cluster::Health fresh = coordinator_.health();
    const std::lock_guard lock(mutex_);
    snapshot_ = std::move(fresh);
}

}  // namespace artel::runtime
