// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/byte_count.hpp"
#include "base/bytes.hpp"
#include "base/file.hpp"
#include "base/random.hpp"
#include "base/result.hpp"

namespace artel {
namespace {

Result<int> half(int value) {
    if (value % 2 != 0) return invalid_argument("{} is odd", value);
    return value / 2;
}
Result<int> quarter(int value) {
    ARTEL_ASSIGN(const int once, half(value));
    ARTEL_ASSIGN(const int twice, half(once));
    return twice;
}

TEST(Result, AssignReturnsTheFirstError) {
    EXPECT_EQ(*quarter(8), 2);
    EXPECT_EQ(quarter(6).status().message(), "3 is odd");
}

TEST(Result, ContextKeepsTheCodeAndPrefixesTheMessage) {
    const Error error =
        with_context(with_context(data_loss("12 bytes missing"), "blk.3"), "loading a.gguf");
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_EQ(error.message(), "loading a.gguf: blk.3: 12 bytes missing");
    EXPECT_TRUE(with_context(ok(), "x").ok());
}

TEST(ByteCount, ParsesUnitsAndRefusesNonsense) {
    EXPECT_EQ(*parse_byte_count("14GiB"), 14ULL << 30);
    EXPECT_EQ(*parse_byte_count("1.5 KB"), 1500u);
    EXPECT_EQ(*parse_byte_count("0"), 0u);
    for (const char* bad : {"", "GiB", "-1GiB", "1XB", "nan", "1e30GiB"})
        EXPECT_FALSE(parse_byte_count(bad).ok()) << bad;
}

TEST(ByteCount, FormatsThreeDigits) {
    EXPECT_EQ(format_byte_count(512), "512 B");
    EXPECT_EQ(format_byte_count(1536), "1.50 KiB");
    EXPECT_EQ(format_byte_count(14ULL << 30), "14.0 GiB");
}

class FileTest : public testing::Test {
  protected:
    FileTest() {
        std::string name = (std::filesystem::temp_directory_path() / "artel-file-XXXXXX").string();
        directory_ = ::mkdtemp(name.data());
    }
    ~FileTest() override { std::filesystem::remove_all(directory_); }
    std::filesystem::path directory_;
};

TEST_F(FileTest, APipeIsReadToItsEndHoweverLateItsWriter) {
    const auto pipe = directory_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::thread writer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        std::ofstream file(pipe);
        file << "late" << std::flush;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        file << " but whole";
    });
    const auto text = read_file(pipe, 100);
    writer.join();
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_EQ(*text, "late but whole");
}

TEST_F(FileTest, WhatIsNoRegularFileIsNeverReplaced) {
    const auto pipe = directory_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const auto hanging = directory_ / "hanging";
    std::filesystem::create_symlink(directory_ / "nothing", hanging);
    const auto loop = directory_ / "loop";
    std::filesystem::create_symlink(loop, loop);
    for (const auto& path : {std::filesystem::path("/dev/null"), pipe, hanging, loop, directory_}) {
        const auto before = std::filesystem::symlink_status(path).type();
        EXPECT_FALSE(write_file_atomically(path, {}).ok()) << path;
        EXPECT_EQ(std::filesystem::symlink_status(path).type(), before) << path;
    }
}

TEST_F(FileTest, ALinkStaysAndItsFileIsWritten) {
    const auto file = directory_ / "file";
    const auto link = directory_ / "link";
    ASSERT_TRUE(write_file_atomically(file, std::as_bytes(std::span("old", 3))).ok());
    std::filesystem::create_symlink("file", link);
    ASSERT_TRUE(write_file_atomically(link, std::as_bytes(std::span("new", 3))).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(*read_file(file, 100), "new");
}

TEST_F(FileTest, ADirectoryHasOneOwnerAtATime) {
    {
        const auto owner = lock_directory(directory_);
        ASSERT_TRUE(owner.ok()) << owner.status().message();
        const auto rival = lock_directory(directory_);
        EXPECT_EQ(rival.status().code(), ErrorCode::kFailedPrecondition);
    }
    EXPECT_TRUE(lock_directory(directory_).ok());
    EXPECT_EQ(lock_directory(directory_ / "none").status().code(), ErrorCode::kNotFound);
}

TEST(ByteReader, RefusesToReadPastItsEnd) {
    ByteWriter writer;
    writer.write<std::uint32_t>(7);
    const auto bytes = writer.take();
    ByteReader reader(bytes);
    EXPECT_EQ(*reader.read<std::uint16_t>(), 7);
    EXPECT_FALSE(reader.read<std::uint32_t>().ok());
    EXPECT_FALSE(reader.read_bytes(~0ULL).ok());
    EXPECT_EQ(reader.read_bytes(2)->size(), 2u);
}

TEST(Random, SameSeedSameValuesAndBoundsHold) {
    Random a(5), b(5);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(a.next(), b.next());
    EXPECT_EQ(Random(1).next(), 0x910A2DEC89025CC1ULL);  // first output of SplitMix64 for seed 1
    for (int i = 0; i < 1000; ++i) {
        const auto value = a.between(-3, 3);
        EXPECT_TRUE(value >= -3 && value <= 3);
    }
}

}  // namespace
}  // namespace artel
