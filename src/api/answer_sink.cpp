// SPDX-License-Identifier: Apache-2.0
#include "api/answer_sink.hpp"

#include <type_traits>
#include <utility>

#include "api/completion_answer.hpp"

namespace artel::api {

void AnswerSink::add(Event event) {
    {
        MutexLock lock(mutex_);
        events_.push_back(std::move(event));
        if (events_.size() > 1) return;  // a delivery is on its way
    }
    mailbox_->post([self = shared_from_this()] { self->deliver(); });
}

void AnswerSink::deliver() {
    std::vector<Event> events;
    {
        MutexLock lock(mutex_);
        events.swap(events_);
    }
    for (const Event& event : events)
        std::visit(
            [this](const auto& what) {
                using Type = std::decay_t<decltype(what)>;
                if constexpr (std::is_same_v<Type, cluster::Refusal>)
                    answer_->on_refused(what);
                else if constexpr (std::is_same_v<Type, cluster::Token>)
                    answer_->on_token(choice_, what);
                else if constexpr (std::is_same_v<Type, cluster::FinishReason>)
                    answer_->on_finished(choice_, what);
                else
                    answer_->on_failed(what);
            },
            event);
}

}  // namespace artel::api
