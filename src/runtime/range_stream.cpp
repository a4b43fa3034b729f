// SPDX-License-Identifier: Apache-2.0
#include "runtime/range_stream.hpp"

#include <algorithm>
#include <cstring>

#include "protocol/hash.hpp"
#include "protocol/limits.hpp"

namespace artel::runtime {
namespace {

constexpr std::uint64_t kRangesAhead = 4;
constexpr Duration kPatience = std::chrono::seconds(60);
constexpr Duration kAskAgain = std::chrono::seconds(10);
constexpr int kAsksMax = 30;

}  // namespace

void RangeStream::want(const protocol::WeightsRange& range) {
    {
        const std::lock_guard lock(mutex_);
        if (!answers_.emplace(range, Answer{}).second) return;
    }
    ask_(range);
}

Result<RangeStream::Answer> RangeStream::take(const protocol::WeightsRange& range,
                                              Duration patience) {
    std::unique_lock lock(mutex_);
    const bool has_come =
        changed_.wait_for(lock, patience, [&] { return is_aborted_ || answers_[range].has_come; });
    if (is_aborted_) return cancelled("loading was replaced");
    if (!has_come)
        return deadline_exceeded("the coordinator sent no weights for {:.0f} s", seconds(patience));
    Answer answer = std::move(answers_[range]);
    answers_.erase(range);
    if (!answer.error.empty())
        return unavailable("the coordinator cannot send weights: {}", answer.error);
    return answer;
}

Error RangeStream::read(protocol::ModelPart part, std::uint32_t tensor, std::uint64_t part_bytes,
                        std::uint64_t offset, std::span<std::byte> target) {
    // Whole chunks at fixed places, so that what was asked ahead is what comes next.
    const std::uint64_t chunk = protocol::kChunkBytesMax;
    while (!target.empty()) {
        const std::uint64_t first = offset / chunk * chunk;
        for (std::uint64_t ahead = first;
             ahead < part_bytes && ahead < first + kRangesAhead * chunk; ahead += chunk)
            want({part, tensor, ahead,
                  static_cast<std::uint32_t>(std::min(chunk, part_bytes - ahead))});
        const protocol::WeightsRange range{
            part, tensor, first, static_cast<std::uint32_t>(std::min(chunk, part_bytes - first))};
        ARTEL_ASSIGN(const Answer answer, take(range, kPatience));
        const std::uint64_t skip = offset - first;
        const std::uint64_t count = std::min<std::uint64_t>(target.size(), range.bytes - skip);
        std::memcpy(target.data(), answer.bytes.data() + skip, count);
        target = target.subspan(count);
        offset += count;
        if (skip + count < range.bytes) {  // the next read begins within this chunk: keep it
            const std::lock_guard lock(mutex_);
            Answer kept = answer;
            kept.has_come = true;
            answers_[range] = std::move(kept);
        }
    }
    return ok();
}

Result<std::vector<std::byte>> RangeStream::read_slow(const protocol::WeightsRange& range) {
    want(range);
    for (int asked = 1;; ++asked) {
        auto answer = take(range, kAskAgain);
        if (answer.ok()) {
            const auto bytes = answer->bytes.span();
            return std::vector<std::byte>(bytes.begin(), bytes.end());
        }
        if (answer.status().code() != ErrorCode::kDeadlineExceeded || asked == kAsksMax)
            return answer.status();
        ask_(range);
    }
}

Result<std::vector<std::byte>> RangeStream::read_all(protocol::ModelPart part,
                                                     std::uint64_t bytes_max) {
    const protocol::WeightsRange size_only{part, 0, 0, 0};
    want(size_only);
    ARTEL_ASSIGN(const Answer answer, take(size_only, kPatience));
    if (answer.part_bytes > bytes_max)
        return invalid_argument("a part of {} bytes; at most {} are expected", answer.part_bytes,
                                bytes_max);
    std::vector<std::byte> bytes(static_cast<std::size_t>(answer.part_bytes));
    ARTEL_TRY(read(part, 0, bytes.size(), 0, bytes));
    return bytes;
}

void RangeStream::supply(protocol::WeightsChunk chunk) {
    const bool is_damaged =
        chunk.error.empty() && (chunk.payload.size() != chunk.range.bytes ||
                                protocol::hash_bytes(chunk.payload.span()) != chunk.hash);
    {
        const std::lock_guard lock(mutex_);
        const auto found = answers_.find(chunk.range);
        if (found == answers_.end() || found->second.has_come) return;  // not asked for
        if (!is_damaged) {
            found->second = {.has_come = true,
                             .error = std::move(chunk.error),
                             .part_bytes = chunk.bytes_total,
                             .bytes = std::move(chunk.payload)};
        }
    }
    if (is_damaged) return ask_(chunk.range);
    changed_.notify_all();
}

bool RangeStream::is_aborted() {
    const std::lock_guard lock(mutex_);
    return is_aborted_;
}

void RangeStream::abort() {
    {
        const std::lock_guard lock(mutex_);
        is_aborted_ = true;
    }
    changed_.notify_all();
}

}  // namespace artel::runtime
