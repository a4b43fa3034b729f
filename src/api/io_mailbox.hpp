// SPDX-License-Identifier: Apache-2.0
// IoMailbox: a way onto the HTTP io thread that others may keep for longer than the server lives.
// After close() posts are dropped. Any thread.
#pragma once

#include <functional>
#include <utility>

#include "api/http_server.hpp"
#include "base/mutex.hpp"

namespace artel::api {

class IoMailbox {
  public:
    explicit IoMailbox(HttpServer& server) : server_(&server) {}

    void post(std::function<void()> work) {
        MutexLock lock(mutex_);
        if (server_ != nullptr) server_->post(std::move(work));
    }
    /// Before the server goes.
    void close() {
        MutexLock lock(mutex_);
        server_ = nullptr;
    }

  private:
    Mutex mutex_;
    HttpServer* server_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel::api
