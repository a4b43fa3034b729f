// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker_storage.hpp"

#include <algorithm>
#include <optional>

#include "base/byte_count.hpp"
#include "base/log.hpp"
#include "runtime/model_file.hpp"
#include "runtime/range_stream.hpp"
#include "runtime/weight_sources.hpp"

namespace artel::runtime {
namespace {

constexpr std::uint64_t kIndexBytesMax = 512ULL << 20;

/// The file of `directories` whose index has this digest.
std::shared_ptr<const ModelFile> find_local(const std::vector<std::filesystem::path>& directories,
                                            const protocol::Hash128& digest) {
    for (const auto& directory : directories) {
        std::error_code failure;
        for (const auto& entry : std::filesystem::directory_iterator(directory, failure)) {
            if (entry.path().extension() != ".gguf") continue;
            const auto found = ModelFile::digest_of(entry.path());
            if (!found.ok() || *found != digest) continue;
            auto file = ModelFile::open(entry.path());
            if (file.ok()) return *std::move(file);
            log_warning("a local copy cannot be used",
                        {{"file", entry.path().string()},
                         {"reason", std::string(file.status().message())}});
        }
    }
    return nullptr;
}

Result<EngineExecutor::Model> open_model(const protocol::AssignStage& assignment,
                                         const WorkerStorageOptions& options,
                                         const std::shared_ptr<RangeStream>& stream) {
    WeightSourceParts parts;
    parts.stream = stream;
    parts.state_dir = options.state_dir;
    if (!options.cache_dir.empty()) parts.cache.emplace(options.cache_dir, assignment.model);
    parts.local = find_local(options.model_dirs, assignment.model);
    if (parts.local) {
        log_info("loading from a local copy",
                 {{"file", parts.local->index().shards().front().path.string()}});
        parts.index = std::shared_ptr<const gguf::GgufIndex>(parts.local, &parts.local->index());
    } else {
        log_info("no local copy; weights come from the coordinator",
                 {{"model", assignment.model_name}});
        ARTEL_ASSIGN(const auto blob, stream->read_all(protocol::ModelPart::Index, kIndexBytesMax));
        ARTEL_ASSIGN(auto parsed, parse_index_blob(blob));
        parts.index = std::make_shared<const gguf::GgufIndex>(std::move(parsed));
    }
    auto index = parts.index;
    auto weights = make_weight_source(std::move(parts));
    if (options.wrap_weights) weights = options.wrap_weights(std::move(weights));
    return EngineExecutor::Model{std::move(index), std::move(weights)};
}

protocol::StageRefusal refusal_for(const Error& error) {
    if (error.code() == ErrorCode::kResourceExhausted)
        return protocol::StageRefusal::NotEnoughMemory;
    if (error.code() == ErrorCode::kUnimplemented) return protocol::StageRefusal::Unsupported;
    return protocol::StageRefusal::LoadFailed;
}

}  // namespace

WorkerStorage::WorkerStorage(EventLoop& loop, EngineExecutor& executor,
                             WorkerStorageOptions options)
    : loop_(loop),
      executor_(executor),
      options_(std::move(options)),
      records_(loop, options_.state_dir) {}

WorkerStorage::~WorkerStorage() {
    *is_alive_ = false;
    if (stream_) stream_->abort();
}

void WorkerStorage::report(std::uint64_t load, cluster::StorageEvent event) {
    loop_.post([this, alive = is_alive_, load, event = std::move(event)] {
        if (*alive && load == load_ && on_event_) on_event_(event);
    });
}

void WorkerStorage::load(const protocol::AssignStage& assignment) {
    const std::uint64_t load = ++load_;
    const protocol::Epoch epoch = assignment.epoch;
    if (stream_) stream_->abort();
    if (options_.memory_bytes > 0 && assignment.memory_bytes > options_.memory_bytes)
        return report(load,
                      cluster::LoadFailed{epoch, protocol::StageRefusal::NotEnoughMemory,
                                          fmt::format("the stage needs {}, this worker may use {}",
                                                      format_byte_count(assignment.memory_bytes),
                                                      format_byte_count(options_.memory_bytes)),
                                          assignment.memory_bytes, options_.memory_bytes});
    stream_ =
        std::make_shared<RangeStream>([this, load, epoch](const protocol::WeightsRange& range) {
            report(load, cluster::RangeWanted{epoch, range});
        });
    auto last = std::make_shared<TimePoint>();
    executor_.load(
        assignment,
        [assignment, options = options_, stream = stream_] {
            return open_model(assignment, options, stream);
        },
        [this, load, epoch, last](std::uint64_t done, std::uint64_t total) {
            const TimePoint now = OsClock().now();
            if (done < total && now - *last < std::chrono::milliseconds(200)) return;
            *last = now;
            report(load, cluster::LoadAdvanced{epoch, done, total});
        },
        [this, load, epoch](const Error& error) {
            if (error.ok()) return report(load, cluster::LoadFinished{epoch});
            report(load, cluster::LoadFailed{epoch, refusal_for(error),
                                             std::string(error.message()), 0, 0});
        });
}

void WorkerStorage::unload() {
    ++load_;
    if (stream_) stream_->abort();
    executor_.unload();
}

void WorkerStorage::supply(protocol::WeightsChunk chunk) {
    if (stream_) stream_->supply(std::move(chunk));
}

void WorkerStorage::read(cluster::NodeId requester, const protocol::WeightsRequest& request) {
    protocol::WeightsChunk chunk;
    chunk.epoch = request.epoch;
    chunk.model = request.model;
    chunk.range = request.range;
    chunk.error = "this node serves no weights";
    report(load_, cluster::RangeRead{requester, std::move(chunk)});
}

void WorkerStorage::put(const std::string& key, std::vector<std::byte> record) {
    records_.put(key, std::move(record),
                 [this, alive = is_alive_](const cluster::RecordStored& stored) {
                     if (*alive && on_event_) on_event_(stored);
                 });
}

}  // namespace artel::runtime
