// SPDX-License-Identifier: Apache-2.0
#include "api/http_exchange.hpp"

#include <utility>

namespace artel::api {

Responder Exchange::responder_of(const std::shared_ptr<Exchange>& exchange) {
    return Responder(std::shared_ptr<Exchange>(
        exchange.get(), [keep = exchange](Exchange* abandoned) { abandoned->abandon(); }));
}

void Exchange::wake() {
    if (is_detached_ || wake_is_pending_) return;
    wake_is_pending_ = true;
    wake_();
}

void Exchange::respond(HttpResponse response) {
    MutexLock lock(mutex_);
    if (has_head_) return;
    has_head_ = true;
    output_.head = std::move(response);
    output_.is_finished = true;
    wake();
}

void Exchange::start_stream(HttpResponse head) {
    MutexLock lock(mutex_);
    if (has_head_) return;
    has_head_ = true;
    head.body.clear();
    output_.head = std::move(head);
    output_.is_stream = true;
    wake();
}

bool Exchange::push(std::string bytes) {
    MutexLock lock(mutex_);
    if (is_detached_ || output_.is_finished || output_.is_too_slow) return false;
    unsent_bytes_ += bytes.size();
    if (unsent_bytes_ > bytes_max_) {
        output_.is_too_slow = true;
        wake_is_pending_ = false;  // a wake-up that found a write in flight has taken nothing
        wake();
        return false;
    }
    output_.bytes += bytes;
    wake();
    return true;
}

void Exchange::finish() {
    MutexLock lock(mutex_);
    output_.is_finished = true;
    wake();
}

void Exchange::abandon() {
    std::function<void()> unused;  // destroyed after the lock: it may own anything
    MutexLock lock(mutex_);
    unused.swap(disconnect_callback_);
    if (output_.is_finished) return;
    output_.is_abandoned = true;
    wake();
}

void Exchange::on_disconnect(std::function<void()> callback) {
    {
        MutexLock lock(mutex_);
        if (!is_detached_) {
            disconnect_callback_ = std::move(callback);
            return;
        }
    }
    callback();
}

Exchange::Output Exchange::take() {
    MutexLock lock(mutex_);
    wake_is_pending_ = false;
    Output taken = std::exchange(output_, Output{});
    // What has been said stays said: a later push() or abandon() must still see it.
    output_.is_finished = taken.is_finished;
    output_.is_stream = taken.is_stream;
    output_.is_too_slow = taken.is_too_slow;
    return taken;
}

bool Exchange::is_too_slow() {
    MutexLock lock(mutex_);
    return output_.is_too_slow;
}

void Exchange::on_bytes_sent(std::size_t count) {
    MutexLock lock(mutex_);
    unsent_bytes_ -= count;
}

std::function<void()> Exchange::detach() {
    MutexLock lock(mutex_);
    is_detached_ = true;
    wake_ = nullptr;
    return std::exchange(disconnect_callback_, nullptr);
}

void Responder::respond(HttpResponse response) const {
    exchange_->respond(std::move(response));
}
void Responder::start_stream(HttpResponse head) const {
    exchange_->start_stream(std::move(head));
}
bool Responder::push(std::string bytes) const {
    return exchange_->push(std::move(bytes));
}
void Responder::finish() const {
    exchange_->finish();
}
void Responder::on_disconnect(std::function<void()> callback) const {
    exchange_->on_disconnect(std::move(callback));
}

}  // namespace artel::api
