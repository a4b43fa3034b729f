// SPDX-License-Identifier: Apache-2.0
// A worker's weights against a real coordinator's storage: what differs is noticed tensor by
// tensor, and the bytes are the coordinator's whatever lies on the worker's disk.
#include "runtime/weight_sources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "nodes/model_on_disk.hpp"
#include "runtime/coordinator_storage.hpp"
#include "runtime/event_loop.hpp"

namespace artel::runtime {
namespace {

using protocol::ModelPart;
using ::testing::HasSubstr;

constexpr const char* kTensor = "blk.1.ffn_down.weight";
constexpr const char* kOther = "blk.0.attn_q.weight";

/// The coordinator's half, and what was asked of it.
class Supplier {
  public:
    Supplier(const std::shared_ptr<const ModelFile>& file, const std::filesystem::path& state)
        : storage_(std::make_unique<CoordinatorStorage>(loop_, file, state)),
          stream_(std::make_shared<RangeStream>([this](const protocol::WeightsRange& range) {
              loop_.post([this, range] {
                  if (range.part == ModelPart::Tensor) streamed_.insert(range.tensor);
                  storage_->read({}, {{}, {}, range});
              });
          })) {
        storage_->set_on_event([this](cluster::StorageEvent event) {
            if (auto* read = std::get_if<cluster::RangeRead>(&event))
                stream_->supply(std::move(read->chunk));
        });
    }
    ~Supplier() {
        loop_.stop();
        storage_.reset();
    }
    const std::shared_ptr<RangeStream>& stream() { return stream_; }
    std::set<std::uint32_t> streamed() {
        std::set<std::uint32_t> copy;
        loop_.run([&] { copy = streamed_; });
        return copy;
    }

  private:
    EventLoop loop_;
    std::unique_ptr<CoordinatorStorage> storage_;
    std::shared_ptr<RangeStream> stream_;
    std::set<std::uint32_t> streamed_;  // tensors; on the loop
};

struct WeightSources : testing::Test {
    test::ModelOnDisk model;
    std::shared_ptr<const ModelFile> truth = model.open(model.path());

    std::uint32_t number(const char* tensor) const {
        return static_cast<std::uint32_t>(truth->index().find_tensor(tensor) -
                                          truth->index().tensors().data());
    }
    std::vector<std::byte> expected(const char* tensor) const {
        std::uint64_t total = 0;
        const std::uint64_t bytes = truth->index().find_tensor(tensor)->bytes;
        return *truth->read(
            {ModelPart::Tensor, number(tensor), 0, static_cast<std::uint32_t>(bytes)}, total);
    }
    /// In two pieces, as a loader does.
    std::vector<std::byte> read(engine::WeightSource& source, const char* tensor) const {
        std::vector<std::byte> bytes(truth->index().find_tensor(tensor)->bytes);
        const std::span<std::byte> all(bytes);
        const Error first = source.read(tensor, 0, all.first(64));
        EXPECT_TRUE(first.ok()) << first.message();
        const Error rest = source.read(tensor, 64, all.subspan(64));
        EXPECT_TRUE(rest.ok()) << rest.message();
        return bytes;
    }
    std::unique_ptr<engine::WeightSource> source(Supplier& supplier,
                                                 std::shared_ptr<const ModelFile> local,
                                                 bool has_cache = false) const {
        WeightSourceParts parts;
        parts.local = std::move(local);
        parts.index = std::shared_ptr<const gguf::GgufIndex>(truth, &truth->index());
        parts.stream = supplier.stream();
        if (has_cache) parts.cache.emplace(model.directory() / "cache", truth->digest());
        parts.state_dir = model.directory() / "worker";
        return make_weight_source(std::move(parts));
    }
    std::filesystem::path state() const { return model.directory() / "coordinator"; }
};

TEST_F(WeightSources, AFlippedByteInALocalCopyIsNamedAndTheTensorFetched) {
    const auto copy = model.copy_with_flipped_byte(kTensor);
    Supplier supplier(truth, state());
    const auto weights = source(supplier, model.open(copy));
    testing::internal::CaptureStderr();
    const auto damaged = read(*weights, kTensor);
    const auto sound = read(*weights, kOther);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(damaged, expected(kTensor));
    EXPECT_EQ(sound, expected(kOther));
    EXPECT_EQ(supplier.streamed(), std::set<std::uint32_t>{number(kTensor)});
    EXPECT_THAT(log, HasSubstr(kTensor));
    EXPECT_THAT(log, HasSubstr(copy.string()));
    EXPECT_THAT(log, ::testing::Not(HasSubstr(kOther)));
}

TEST_F(WeightSources, TheCoordinatorsOwnFileIsTakenAsItIs) {
    Supplier supplier(truth, state());
    const auto weights = source(supplier, model.open(model.path()));
    EXPECT_EQ(read(*weights, kTensor), expected(kTensor));
    EXPECT_TRUE(supplier.streamed().empty());
    EXPECT_FALSE(std::filesystem::exists(state() / "manifests")) << "a hash was computed";
}

TEST_F(WeightSources, ACacheIsOnlyUsedForTheVeryBytesThatAreServed) {
    {
        Supplier supplier(truth, state());
        const auto weights = source(supplier, nullptr, true);
        EXPECT_EQ(read(*weights, kTensor), expected(kTensor));
        EXPECT_EQ(supplier.streamed().size(), 1U);
    }
    {
        Supplier supplier(truth, state());
        const auto weights = source(supplier, nullptr, true);
        EXPECT_EQ(read(*weights, kTensor), expected(kTensor));
        EXPECT_TRUE(supplier.streamed().empty());
    }
    // The same index, other weights: a fine-tune of the model under the same metadata.
    const auto tuned = model.open(model.copy_with_flipped_byte(kTensor));
    ASSERT_EQ(tuned->digest(), truth->digest());
    Supplier supplier(tuned, state());
    const auto weights = source(supplier, nullptr, true);
    EXPECT_NE(read(*weights, kTensor), expected(kTensor));
    EXPECT_EQ(supplier.streamed().size(), 1U);
}

TEST_F(WeightSources, EndWithTheLoadThatTheyAreFor) {
    Supplier supplier(truth, state());
    const auto weights = source(supplier, model.open(model.path()));
    supplier.stream()->abort();
    std::vector<std::byte> bytes(64);
    EXPECT_EQ(weights->read(kTensor, 0, bytes).code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace artel::runtime
