// SPDX-License-Identifier: Apache-2.0
// Exchange: the meeting point of a Responder (any thread) and its connection (io thread): a
// bounded queue of answer bytes under one mutex. Private to the HTTP server.
// The Responder's side only stores and wakes; the connection's side takes everything at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/http_server.hpp"
#include "base/mutex.hpp"

namespace artel::api {

class Exchange {
  public:
    /// `wake` is called under the lock, from any thread, when take() has something new.
    Exchange(std::size_t bytes_max, std::function<void()> wake)
        : bytes_max_(bytes_max), wake_(std::move(wake)) {}

    /// A Responder on `exchange`; when its last copy goes, an answer not finished is abandoned.
    static Responder responder_of(const std::shared_ptr<Exchange>& exchange);

    // The Responder's side.
    void respond(HttpResponse response);
    void start_stream(HttpResponse head);
    bool push(std::string bytes);
    void finish();
    void abandon();
    void on_disconnect(std::function<void()> callback);

    // The connection's side.
    struct Output {
        std::optional<HttpResponse> head;  // once
        bool is_stream = false;
        std::string bytes;
        bool is_finished = false;
        bool is_abandoned = false;
        bool is_too_slow = false;
    };
    Output take();
    bool is_too_slow();
    /// Bytes handed out by take() have left (they count against the limit until then).
    void on_bytes_sent(std::size_t count);
    /// No more wakes, push() is false from now on. Returns the disconnect callback to run unless
    /// the answer was complete.
    std::function<void()> detach();

  private:
    void wake() ARTEL_REQUIRES(mutex_);

    const std::size_t bytes_max_;
    Mutex mutex_;
    std::function<void()> wake_ ARTEL_GUARDED_BY(mutex_);  // empty once detached
    std::function<void()> disconnect_callback_ ARTEL_GUARDED_BY(mutex_);
    Output output_ ARTEL_GUARDED_BY(mutex_);
    std::size_t unsent_bytes_ ARTEL_GUARDED_BY(mutex_) = 0;
    bool has_head_ ARTEL_GUARDED_BY(mutex_) = false;
    bool wake_is_pending_ ARTEL_GUARDED_BY(mutex_) = false;
    bool is_detached_ ARTEL_GUARDED_BY(mutex_) = false;
};

}  // namespace artel::api
