// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker_storage.hpp"

#include <algorithm>
#include <optional>

#include "base/byte_count.hpp"
#include "base/log.hpp"
#include "runtime/model_file.hpp"
#include "runtime/range_stream.hpp"
#include "runtime/tensor_cache.hpp"

namespace artel::runtime {
namespace {

constexpr std::uint64_t kIndexBytesMax = 512ULL << 20;

/// The model file itself, kept open as long as its weights are read.
class LocalWeights final : public engine::WeightSource {
  public:
    explicit LocalWeights(std::shared_ptr<const ModelFile> file) : file_(std::move(file)) {}
    Error read(std::string_view name, std::uint64_t offset, std::span<std::byte> target) override {
        const gguf::TensorInfo* tensor = file_->index().find_tensor(name);
        if (tensor == nullptr) return not_found("tensor '{}'", name);
        const auto number = static_cast<std::uint32_t>(tensor - file_->index().tensors().data());
        while (!target.empty()) {
            const auto count = std::min<std::size_t>(target.size(), 4U << 20);
            std::uint64_t part_bytes = 0;
            ARTEL_ASSIGN(const auto bytes, file_->read({protocol::ModelPart::Tensor, number, offset,
                                                        static_cast<std::uint32_t>(count)},
                                                       part_bytes));
            std::copy(bytes.begin(), bytes.end(), target.begin());
            target = target.subspan(count);
            offset += count;
        }
        return ok();
    }

  private:
    std::shared_ptr<const ModelFile> file_;
};

/// Tensors out of the cache, the others from the coordinator and into the cache.
class StreamedWeights final : public engine::WeightSource {
  public:
    StreamedWeights(std::shared_ptr<const gguf::GgufIndex> index,
                    std::shared_ptr<RangeStream> stream, std::optional<TensorCache> cache)
        : index_(std::move(index)), stream_(std::move(stream)), cache_(std::move(cache)) {}

    Error read(std::string_view name, std::uint64_t offset, std::span<std::byte> target) override {
        const gguf::TensorInfo* tensor = index_->find_tensor(name);
        if (tensor == nullptr) return not_found("tensor '{}'", name);
        const auto number = static_cast<std::uint32_t>(tensor - index_->tensors().data());
        if (offset == 0) begin_tensor(number, tensor->bytes);
        if (is_cached_) return cache_->read(number, offset, target);
        ARTEL_TRY(
            stream_->read(protocol::ModelPart::Tensor, number, tensor->bytes, offset, target));
        keep(target, offset + target.size() == tensor->bytes);
        return ok();
    }

  private:
    void begin_tensor(std::uint32_t number, std::uint64_t bytes) {
        writer_.reset();
        is_cached_ = cache_ && cache_->check(number, bytes);
        if (is_cached_ || !cache_) return;
        auto writer = cache_->write(number);
        if (writer.ok())
            writer_ = *std::move(writer);
        else
            give_up_cache(writer.status());
    }
    void keep(std::span<const std::byte> bytes, bool is_last) {
        if (!writer_) return;
        Error error = writer_->append(bytes);
        if (error.ok() && is_last) error = writer_->commit();
        if (!error.ok()) give_up_cache(error);
        if (is_last) writer_.reset();
    }
    void give_up_cache(const Error& error) {
        log_warning("weights are not cached", {{"reason", std::string(error.message())}});
        writer_.reset();
        cache_.reset();
    }

    std::shared_ptr<const gguf::GgufIndex> index_;
    std::shared_ptr<RangeStream> stream_;
    std::optional<TensorCache> cache_;
    std::unique_ptr<TensorCache::Writer> writer_;  // of the tensor being read
    bool is_cached_ = false;                       // the tensor being read
};

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
    if (auto local = find_local(options.model_dirs, assignment.model)) {
        log_info("loading from a local copy",
                 {{"file", local->index().shards().front().path.string()}});
        auto index = std::shared_ptr<const gguf::GgufIndex>(local, &local->index());
        return EngineExecutor::Model{std::move(index),
                                     std::make_unique<LocalWeights>(std::move(local))};
    }
    log_info("no local copy; weights come from the coordinator",
             {{"model", assignment.model_name}});
    ARTEL_ASSIGN(const auto blob, stream->read_all(protocol::ModelPart::Index, kIndexBytesMax));
    ARTEL_ASSIGN(auto parsed, parse_index_blob(blob));
    auto index = std::make_shared<const gguf::GgufIndex>(std::move(parsed));
    std::optional<TensorCache> cache;
    if (!options.cache_dir.empty()) cache.emplace(options.cache_dir, assignment.model);
    return EngineExecutor::Model{
        index, std::make_unique<StreamedWeights>(index, stream, std::move(cache))};
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
