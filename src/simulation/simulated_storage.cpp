// SPDX-License-Identifier: Apache-2.0
#include "simulation/simulated_storage.hpp"

#include <algorithm>

#include "protocol/hash.hpp"
#include "simulation/hash_model.hpp"

namespace artel::simulation {
namespace {

constexpr std::uint32_t kRangeBytes = 4096;
constexpr std::uint32_t kRangesPerLayer = 2;

std::vector<std::byte> bytes_of(const protocol::WeightsRange& range) {
    std::vector<std::byte> bytes(range.bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(mix(range.tensor, range.offset + i));
    return bytes;
}

}  // namespace

void SimulatedStorage::load(const protocol::AssignStage& assignment) {
    const bool is_held =
        held_ && held_->model == assignment.model && held_->layers == assignment.layers &&
        held_->has_input == assignment.has_input && held_->has_output == assignment.has_output;
    assignment_ = assignment;
    const std::uint64_t load = ++load_;
    if (is_held) return queue_.after(disk_.latency, [this, load] { finish(load); });
    held_.reset();
    ranges_left_ = disk_.streams_weights ? assignment.layers.count * kRangesPerLayer : 0;
    queue_.after(disk_.latency, [this, load] {
        if (load != load_) return;
        if (disk_.fails_next_load) {
            disk_.fails_next_load = false;
            return on_event_(
                cluster::LoadFailed{.epoch = assignment_.epoch, .message = "short read"});
        }
        if (ranges_left_ > 0)
            ask(load);
        else
            advance(load, 0);
    });
}

void SimulatedStorage::advance(std::uint64_t load, std::uint64_t bytes_done) {
    if (load != load_) return;
    const std::uint64_t total = assignment_.memory_bytes;
    on_event_(cluster::LoadAdvanced{assignment_.epoch, bytes_done, total});
    if (bytes_done >= total) return finish(load);
    const std::uint64_t piece = std::min(total - bytes_done, std::max<std::uint64_t>(total / 4, 1));
    const Duration time(static_cast<std::int64_t>(
        static_cast<double>(piece) / static_cast<double>(disk_.bytes_per_second) * 1e9));
    queue_.after(time, [this, load, done = bytes_done + piece] { advance(load, done); });
}

void SimulatedStorage::ask(std::uint64_t load) {
    if (load != load_) return;
    on_event_(
        cluster::RangeWanted{assignment_.epoch,
                             {.part = protocol::ModelPart::Tensor,
                              .tensor = assignment_.layers.first + ranges_left_ / kRangesPerLayer,
                              .offset = std::uint64_t{ranges_left_} * kRangeBytes,
                              .bytes = kRangeBytes}});
}

void SimulatedStorage::supply(protocol::WeightsChunk chunk) {
    if (chunk.epoch != assignment_.epoch || ranges_left_ == 0)
        return;  // of a load that was replaced
    if (chunk.error.empty() && protocol::hash_bytes(chunk.payload.span()) != chunk.hash)
        return queue_.after(disk_.latency,
                            [this, load = load_] { ask(load); });  // damaged on the way: again
    if (chunk.error.empty()) {
        const auto expected = bytes_of(chunk.range);
        if (!std::equal(expected.begin(), expected.end(), chunk.payload.span().begin(),
                        chunk.payload.span().end()))
            on_violation_("weights arrived that are not those of the range asked for");
    }
    queue_.after(disk_.latency, [this, load = load_, error = chunk.error] {
        if (load != load_) return;
        if (!error.empty())
            return on_event_(cluster::LoadFailed{.epoch = assignment_.epoch, .message = error});
        on_event_(cluster::LoadAdvanced{assignment_.epoch, 0, assignment_.memory_bytes});
        if (--ranges_left_ == 0)
            finish(load);
        else
            ask(load);
    });
}

void SimulatedStorage::finish(std::uint64_t load) {
    if (load != load_) return;
    held_ = assignment_;
    on_loaded_(assignment_);
    on_event_(cluster::LoadFinished{assignment_.epoch});
}

void SimulatedStorage::read(cluster::NodeId requester, const protocol::WeightsRequest& request) {
    protocol::WeightsChunk chunk;
    chunk.epoch = request.epoch;
    chunk.model = request.model;
    chunk.range = request.range;
    chunk.bytes_total = std::uint64_t{1} << 40;
    chunk.payload = SharedBytes(bytes_of(request.range));
    chunk.hash = protocol::hash_bytes(chunk.payload.span());
    queue_.after(disk_.latency, [this, requester, chunk = std::move(chunk)] {
        on_event_(cluster::RangeRead{requester, chunk});
    });
}

void SimulatedStorage::put(const std::string& key, std::vector<std::byte> record) {
    queue_.after(disk_.latency, [this, key, record = std::move(record)] {
        disk_.records[key] = record;
        on_event_(cluster::RecordStored{key, ok()});
    });
}

}  // namespace artel::simulation
