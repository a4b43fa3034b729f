// SPDX-License-Identifier: Apache-2.0
// RangeStream: bytes of a model part that come in ranges from the coordinator. The loading thread
// reads in ascending order and waits; ranges are asked for a few ahead on the loop. A range that
// arrives damaged is asked for again. One loading thread; supply() and abort() from the loop.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "cluster/environment.hpp"

namespace artel::runtime {

class RangeStream {
  public:
    /// `ask` may be called from the loading thread; the answer comes through supply().
    explicit RangeStream(std::function<void(protocol::WeightsRange)> ask) : ask_(std::move(ask)) {}

    /// Fills `target` from `offset` of a part of `part_bytes` bytes. Errors: DeadlineExceeded
    /// (nothing came for a minute), Cancelled (aborted), what the coordinator said.
    Error read(protocol::ModelPart part, std::uint32_t tensor, std::uint64_t part_bytes,
               std::uint64_t offset, std::span<std::byte> target);
    /// One range that takes the coordinator time (it reads a tensor for it); it is asked again now
    /// and then, which also tells that this side lives.
    Result<std::vector<std::byte>> read_slow(const protocol::WeightsRange& range);
    /// Asks for it ahead of read_slow().
    void want(const protocol::WeightsRange& range);
    /// All of a part whose size is not known yet.
    Result<std::vector<std::byte>> read_all(protocol::ModelPart part, std::uint64_t bytes_max);

    void supply(protocol::WeightsChunk chunk);
    void abort();
    bool is_aborted();

  private:
    struct Answer {
        bool has_come = false;
        std::string error;
        std::uint64_t part_bytes = 0;
        SharedBytes bytes;
    };
    Result<Answer> take(const protocol::WeightsRange& range, Duration patience);

    std::function<void(protocol::WeightsRange)> ask_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<protocol::WeightsRange, Answer> answers_;  // asked for, come or not
    bool is_aborted_ = false;
};

}  // namespace artel::runtime
