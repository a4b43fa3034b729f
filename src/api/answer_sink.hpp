// SPDX-License-Identifier: Apache-2.0
// AnswerSink: carries the events of one choice from the cluster's thread to its CompletionAnswer
// on the HTTP io thread, in order and without ever making the cluster wait. One post carries all
// events that came since the last. Bounded by the request: at most one event a token of its
// context.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "api/io_mailbox.hpp"
#include "base/mutex.hpp"
#include "cluster/request.hpp"

namespace artel::api {

class CompletionAnswer;

class AnswerSink : public cluster::RequestSink, public std::enable_shared_from_this<AnswerSink> {
  public:
    AnswerSink(std::shared_ptr<CompletionAnswer> answer, std::uint32_t choice,
               std::shared_ptr<IoMailbox> mailbox)
        : answer_(std::move(answer)), choice_(choice), mailbox_(std::move(mailbox)) {}

    void on_refused(const cluster::Refusal& refusal) override { add(refusal); }
    void on_token(std::uint32_t, const cluster::Token& token) override { add(token); }
    void on_logits(std::uint32_t, std::uint32_t, SharedBytes) override {}  // never asked for
    void on_finished(std::uint32_t, cluster::FinishReason reason) override { add(reason); }
    void on_failed(const cluster::RequestFailure& failure) override { add(failure); }

  private:
    using Event = std::variant<cluster::Refusal, cluster::Token, cluster::FinishReason,
                               cluster::RequestFailure>;
    void add(Event event);
    void deliver();  // io thread

    const std::shared_ptr<CompletionAnswer> answer_;
    const std::uint32_t choice_;
    const std::shared_ptr<IoMailbox> mailbox_;
    Mutex mutex_;
    std::vector<Event> events_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel::api
