// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_hashes.hpp"

#include <gtest/gtest.h>

#include "nodes/model_on_disk.hpp"
#include "protocol/hash.hpp"

namespace artel::runtime {
namespace {

constexpr const char* kTensor = "blk.1.ffn_down.weight";

std::uint32_t number_of(const ModelFile& file, const char* name) {
    return static_cast<std::uint32_t>(file.index().find_tensor(name) -
                                      file.index().tensors().data());
}

struct HashesOnDisk : testing::Test {
    test::ModelOnDisk model;
    std::filesystem::path state = model.directory() / "state";
    /// The hash, and how many tensors had to be read for it.
    std::pair<protocol::Hash128, std::size_t> hash(const std::filesystem::path& path) {
        const auto file = model.open(path);
        TensorHashes hashes(file, state);
        auto one = hashes.of(number_of(*file, kTensor));
        EXPECT_TRUE(one.ok()) << one.status().message();
        return {one.value_or(protocol::Hash128{}), hashes.computed()};
    }
};

TEST_F(HashesOnDisk, AreThoseOfTheTensorsBytes) {
    const auto file = model.open(model.path());
    const std::uint32_t number = number_of(*file, kTensor);
    std::uint64_t bytes = 0;
    const auto all = file->read({protocol::ModelPart::Tensor, number, 0,
                                 static_cast<std::uint32_t>(file->index().tensors()[number].bytes)},
                                bytes);
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(hash(model.path()).first, protocol::hash_bytes(*all));
}

TEST_F(HashesOnDisk, ASecondStartHashesNothing) {
    const auto [first, computed] = hash(model.path());
    EXPECT_EQ(computed, 1U);
    const auto [second, computed_again] = hash(model.path());
    EXPECT_EQ(second, first);
    EXPECT_EQ(computed_again, 0U);
}

TEST_F(HashesOnDisk, AFileThatWasTouchedIsHashedAnew) {
    const auto before = hash(model.path()).first;
    const auto time = std::filesystem::last_write_time(model.path());
    model.flip_last_byte(model.path(), kTensor);
    std::filesystem::last_write_time(model.path(), time + std::chrono::nanoseconds(1000));
    const auto [after, computed] = hash(model.path());
    EXPECT_EQ(computed, 1U);
    EXPECT_NE(after, before);
}

TEST_F(HashesOnDisk, ADamagedManifestIsAsIfThereWereNone) {
    const auto before = hash(model.path()).first;
    for (const auto& entry : std::filesystem::directory_iterator(state / "manifests")) {
        std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
        file.seekp(-20, std::ios::end);
        file.put('x');
    }
    const auto [after, computed] = hash(model.path());
    EXPECT_EQ(after, before);
    EXPECT_EQ(computed, 1U);
    for (const auto& entry : std::filesystem::directory_iterator(state / "manifests"))
        std::filesystem::resize_file(entry.path(), 30);
    EXPECT_EQ(hash(model.path()), std::pair(before, std::size_t{1}));
}

TEST_F(HashesOnDisk, AnIdentityIsThatOfTheFileNotOfItsBytes) {
    const auto copy = model.directory() / "same.gguf";
    std::filesystem::copy_file(model.path(), copy);
    const auto link = model.directory() / "link.gguf";
    std::filesystem::create_hard_link(model.path(), link);
    const auto identity = file_identity(*model.open(model.path()));
    EXPECT_EQ(file_identity(*model.open(link)), identity);
    EXPECT_NE(file_identity(*model.open(copy)), identity);
}

}  // namespace
}  // namespace artel::runtime
