// SPDX-License-Identifier: Apache-2.0
// The index of one file: what is read from a right one, and that each wrong field is refused by
// name. The numbers C.. and G.. are those of known field cases and CVEs of other readers.
#include "gguf/gguf_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.hpp"
#include "gguf/gguf_test_files.hpp"
#include "gguf/tensor_reader.hpp"

namespace artel::gguf {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string message_of(const Result<GgufIndex>& index) {
    return std::string(index.status().message());
}

TEST(GgufIndex, ReadsATinyModel) {
    const std::vector<std::byte> bytes = tiny_writer().to_bytes();
    const Result<GgufIndex> index = parse_one(bytes);
    ASSERT_TRUE(index.ok()) << index.status();
    ASSERT_EQ(index->tensors().size(), 3U);
    EXPECT_EQ(index->metadata().entries()[0].key, "general.architecture");
    const TensorInfo* output = index->find_tensor("output.weight");
    ASSERT_NE(output, nullptr);
    EXPECT_EQ(output->columns(), 32U);
    EXPECT_EQ(output->rows(), 2U);
    EXPECT_EQ(output->row_bytes(), 34U);
    EXPECT_EQ(output->bytes, 68U);
    EXPECT_EQ(output->type_id, 8U);
    EXPECT_EQ(output->offset + output->bytes, bytes.size());
    EXPECT_EQ(index->find_tensor("output"), nullptr);
    EXPECT_EQ(index->tensor_bytes(), 48U + 16U + 68U);
    EXPECT_EQ(index->shards()[0].version, 3U);
    EXPECT_TRUE(check_data_present(*index).ok());
}

TEST(GgufIndex, ReadsVersion2) {
    std::vector<std::byte> bytes = tiny_writer().to_bytes();
    bytes[4] = std::byte{2};
    EXPECT_EQ(parse_one(bytes).value().shards()[0].version, 2U);
}

TEST(GgufIndex, HonoursAlignment) {
    for (const std::uint32_t alignment : {8U, 64U, 1U << 20}) {
        GgufWriter writer = tiny_writer();
        writer.add_metadata("general.alignment", alignment);
        writer.set_alignment(alignment);
        const Result<GgufIndex> index = parse_one(writer.to_bytes());
        ASSERT_TRUE(index.ok()) << index.status();
        EXPECT_EQ(index->shards()[0].data_offset % alignment, 0U);
        EXPECT_TRUE(check_data_present(*index).ok());
    }
}

// C10, G6, G7: every cut inside the index is refused; every cut after it opens, and is refused by
// who needs the data, naming the first tensor that is cut.
TEST(GgufIndex, CutAtEveryByte) {
    const std::vector<std::byte> bytes = tiny_writer().to_bytes();
    const std::uint64_t index_bytes = parse_one(bytes).value().shards()[0].index_bytes;
    ASSERT_LT(index_bytes, bytes.size());
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
        const Result<GgufIndex> index = parse_one(std::span(bytes).first(cut));
        if (cut < index_bytes) {
            ASSERT_EQ(index.status().code(), ErrorCode::kDataLoss) << cut << index.status();
            continue;
        }
        ASSERT_TRUE(index.ok()) << cut << index.status();
        const Error error = check_data_present(*index);
        ASSERT_EQ(error.code(), ErrorCode::kDataLoss) << cut;
        const TensorInfo* first = &index->tensors()[0];
        while (first->offset + first->bytes <= cut) ++first;
        ASSERT_THAT(std::string(error.message()), HasSubstr("tensor '" + first->name + "'"));
    }
}

// Any one bit flipped: either read or refused, and never anything else (run under sanitizers too).
TEST(GgufIndex, EveryBitFlipped) {
    std::vector<std::byte> bytes = tiny_writer().to_bytes();
    std::size_t refused = 0;
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        const std::byte mask{static_cast<unsigned char>(1U << (bit % 8))};
        bytes[bit / 8] ^= mask;
        const Result<GgufIndex> index = parse_one(bytes);
        if (!index.ok() || !check_data_present(*index).ok()) ++refused;
        bytes[bit / 8] ^= mask;
    }
    EXPECT_GT(refused, 1000U);
}

TEST(GgufIndex, WrongMagicAndVersionAreNamed) {
    const auto patched = [](std::size_t place, std::string_view text) {
        std::vector<std::byte> bytes = tiny_writer().to_bytes();
        std::ranges::copy(as_bytes(text), bytes.begin() + static_cast<std::ptrdiff_t>(place));
        return message_of(parse_one(bytes));
    };
    EXPECT_THAT(message_of(parse_one({})), HasSubstr("the file is empty"));
    EXPECT_THAT(patched(0, "GGUX"), HasSubstr("it starts with 'GGUX', expected 'GGUF'"));
    EXPECT_THAT(patched(0, "tjgg"), HasSubstr("older GGML"));
    EXPECT_THAT(patched(4, std::string_view("\0\0\0\0", 4)), HasSubstr("version 0"));
    EXPECT_THAT(patched(4, "\1"), HasSubstr("version 1 is not supported"));
    EXPECT_THAT(patched(4, "\4"), HasSubstr("version 4 is not supported"));
    EXPECT_THAT(patched(4, std::string_view("\0\0\0\3", 4)), HasSubstr("big-endian"));
}

// C06, C07, G3, G5, G10.
TEST(GgufIndex, CountsThatCantBeAreRefused) {
    for (const std::uint64_t count : {1ULL << 63, 1ULL << 60, 1ULL << 58, 1ULL << 32, ~0ULL}) {
        EXPECT_THAT(message_of(RawFile(count, 0).zeros(1000).parse()), HasSubstr("tensor count"));
        EXPECT_THAT(message_of(RawFile(0, count).zeros(1000).parse()), HasSubstr("metadata count"));
    }
    EXPECT_THAT(message_of(RawFile(40, 0).zeros(1000).parse()),
                HasSubstr("tensor count 40 needs at least 1320 bytes, the file has 1000 more"));
}

TEST(GgufIndex, KeysAreChecked) {
    EXPECT_THAT(message_of(RawFile(0, 1).number(~std::uint64_t{0}).zeros(99).parse()),
                HasSubstr("metadata entry 1 of 1: key: length 18446744073709551615"));
    EXPECT_THAT(message_of(RawFile(0, 1).number(std::uint64_t{999}).zeros(99).parse()),
                HasSubstr("999 bytes at byte 32 go past the end of the file (131 bytes)"));
    EXPECT_THAT(message_of(RawFile(0, 1).entry("", ValueType::U8).zeros(9).parse()),
                HasSubstr("the key is empty"));
    EXPECT_THAT(message_of(RawFile(0, 1).entry("a\xff", ValueType::U8).zeros(9).parse()),
                HasSubstr("'a\\xff' is not UTF-8"));
    EXPECT_THAT(message_of(RawFile(0, 1).entry("a\n", ValueType::U8).zeros(9).parse()),
                HasSubstr("control character"));
    EXPECT_THAT(message_of(RawFile(0, 1).entry("a\xc2\x9b", ValueType::U8).zeros(9).parse()),
                HasSubstr("control character"));
    EXPECT_TRUE(RawFile(0, 1).entry("gr\xc3\xbc\xc3\x9f", ValueType::U8).zeros(9).parse().ok());
    // G18: the same key twice, with different types.
    EXPECT_THAT(message_of(RawFile(0, 2)
                               .entry("a", ValueType::U8)
                               .zeros(1)
                               .entry("a", ValueType::U32)
                               .zeros(4)
                               .parse()),
                HasSubstr("metadata entry 2 of 2: metadata key 'a' occurs twice"));
}

// C06, G2, G4.
TEST(GgufIndex, ValuesAreChecked) {
    EXPECT_THAT(message_of(RawFile(0, 1).string("a").number(13U).zeros(9).parse()),
                HasSubstr("'a': value type 13 does not exist"));
    EXPECT_THAT(message_of(RawFile(0, 1).entry("a", ValueType::Bool).text("\2").parse()),
                HasSubstr("a bool is 2, expected 0 or 1"));
    for (const std::uint64_t length : {~0ULL, 1ULL << 30, 100ULL})
        EXPECT_THAT(
            message_of(
                RawFile(0, 1).entry("a", ValueType::String).number(length).zeros(99).parse()),
            HasSubstr("past the end of the file"));
    for (const ValueType type : {ValueType::U8, ValueType::U32, ValueType::F64, ValueType::String})
        for (const std::uint64_t count : {~0ULL, 1ULL << 61, 1ULL << 60, 1ULL << 30})
            EXPECT_THAT(
                message_of(RawFile(0, 1)
                               .entry("a", ValueType::Array)
                               .number(type)
                               .number(count)
                               .zeros(99)
                               .parse()),
                testing::AnyOf(HasSubstr("is too large"), HasSubstr("past the end of the file")));
}

TEST(GgufIndex, NestedArraysAreRefused) {
    RawFile file(0, 1);
    file.entry("a", ValueType::Array);
    for (int depth = 0; depth < 100'000; ++depth)
        file.number(ValueType::Array).number(std::uint64_t{1});
    EXPECT_THAT(message_of(file.parse()), HasSubstr("'a': an array of arrays is not allowed"));
}

// C02, G12, G15.
TEST(GgufIndex, AlignmentIsChecked) {
    for (const std::uint32_t alignment : {0U, 1U, 3U, 4U, 24U, 1U << 21, 1U << 30, 1U << 31})
        EXPECT_THAT(
            message_of(
                RawFile(0, 1).entry("general.alignment", ValueType::U32).number(alignment).parse()),
            HasSubstr("'general.alignment': " + std::to_string(alignment) +
                      ", expected a power of two"));
    EXPECT_THAT(
        message_of(
            RawFile(0, 1).entry("general.alignment", ValueType::String).string("32").parse()),
        HasSubstr("'general.alignment': wanted u32, found string"));
    EXPECT_THAT(message_of(RawFile(0, 1)
                               .entry("general.alignment", ValueType::U64)
                               .number(std::uint64_t{1} << 63)
                               .parse()),
                HasSubstr("out of the range of u32"));
}

struct WrongTensor {
    std::vector<std::uint64_t> dims;
    std::uint32_t type_id;
    std::uint64_t offset;
    const char* message;
};

// C01, C04, C05, C11, C86, G1, G8, G9, G11, G13, G14, G16, G17.
TEST(GgufIndex, WrongTensorsAreRefused) {
    constexpr std::uint64_t kBig = 1ULL << 62;
    const std::vector<WrongTensor> wrong = {
        {{}, 0, 0, "0 dimensions, expected 1 to 4"},
        {{1, 1, 1, 1, 1}, 0, 0, "5 dimensions, expected 1 to 4"},
        {std::vector<std::uint64_t>(9, 1), 0, 0, "9 dimensions"},
        {{0}, 0, 0, "dimension 0 is 0"},
        {{1, 0}, 0, 0, "dimension 1 is 0"},
        {{1, 1, 0}, 0, 0, "dimension 2 is 0"},
        {{1, 1, 1, 0}, 0, 0, "dimension 3 is 0"},
        {{1ULL << 32, 1ULL << 32, 2}, 0, 0, "product of its dimensions does not fit"},
        {{1152, (1ULL << 54) + 1}, 0, 0, "product of its dimensions does not fit"},
        {{~0ULL, 2}, 0, 0, "product of its dimensions does not fit"},
        {{INT64_MAX, 2}, 24, 0, "product of its dimensions does not fit"},
        {{1024, 1024, (1ULL << 44) + 1}, 0, 0, "product of its dimensions does not fit"},
        {{kBig}, 0, 0, "size in bytes does not fit"},
        {{64}, 12, 0, "rows of 64 elements are not whole blocks of 256 (type 12)"},
        {{32}, 4, 0, "type 4 is not a tensor type"},
        {{32}, 39, 0, "type 39 is not a tensor type"},
        {{32}, 1U << 31, 0, "type 2147483648 is not a tensor type"},
        {{32}, ~0U, 0, "type 4294967295 is not a tensor type"},
        {{32}, 0, 7, "offset 7 is not a multiple of the alignment 32"},
        {{32}, 0, ~0ULL - 31, "do not fit in 63 bits"},
        {{32}, 0, INT64_MAX - 31, "do not fit in 63 bits"},
        {{INT64_MAX}, 24, 0, "do not fit in 63 bits"},
    };
    for (const WrongTensor& tensor : wrong)
        EXPECT_THAT(message_of(RawFile(1, 0)
                                   .tensor("blk.0.x", tensor.dims, tensor.type_id, tensor.offset)
                                   .zeros(512)
                                   .parse()),
                    AllOf(HasSubstr("'blk.0.x'"), HasSubstr(tensor.message)));
    EXPECT_THAT(message_of(RawFile(1, 0).string("t").number(~0U).zeros(99).parse()),
                HasSubstr("tensor 1 of 1 't': 4294967295 dimensions"));
}

TEST(GgufIndex, TensorNamesAreChecked) {
    const auto named = [](std::string_view name) {
        return RawFile(1, 0).tensor(name, {8}, 0, 0).zeros(99).parse();
    };
    EXPECT_TRUE(named(std::string(63, 'n')).ok());
    EXPECT_THAT(message_of(named(std::string(64, 'n'))),
                HasSubstr("tensor 1 of 1: name: length 64 is over the limit of 63 bytes"));
    EXPECT_THAT(message_of(named("")), HasSubstr("the name is empty"));
    EXPECT_THAT(message_of(named(std::string_view("a\0b", 3))), HasSubstr("control character"));
    EXPECT_THAT(message_of(named("\xed\xa0\x80")), HasSubstr("is not UTF-8"));
    EXPECT_THAT(
        message_of(RawFile(2, 0).tensor("t", {8}, 0, 0).tensor("t", {8}, 0, 32).zeros(99).parse()),
        HasSubstr("tensor 't' occurs twice"));
}

TEST(GgufIndex, OverlapIsRefused) {
    const auto two = [](std::uint64_t second_offset) {
        return RawFile(2, 0)
            .tensor("a", {16}, 0, 64)
            .tensor("b", {8}, 0, second_offset)
            .zeros(999)
            .parse();
    };
    EXPECT_TRUE(two(32).ok());
    EXPECT_TRUE(two(128).ok());
    EXPECT_THAT(message_of(two(64)), HasSubstr("overlap"));
    EXPECT_THAT(message_of(two(96)), AllOf(HasSubstr("tensors 'a'"), HasSubstr("'b'")));
}

// G26: by 1 byte and by much.
TEST(GgufIndex, DataBeyondTheFileIsNamed) {
    const Result<GgufIndex> index =
        RawFile(1, 0).tensor("t", {1024}, 24, 1ULL << 40).zeros(999).parse();
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_THAT(std::string(check_data_present(*index).message()),
                AllOf(HasSubstr("tensor 't'"), HasSubstr("bytes missing")));
}

TEST(GgufIndex, BytesAfterTheLastTensorAreAllowed) {
    std::vector<std::byte> bytes = tiny_writer().to_bytes();
    bytes.resize(bytes.size() + 4096);
    EXPECT_TRUE(parse_one(bytes).ok());
}

TEST(GgufIndexFile, ReadsTensorsBack) {
    const TestDirectory directory;
    const auto path = directory / "m.gguf";
    ASSERT_TRUE(tiny_writer().write(path).ok());
    const Result<GgufIndex> index = GgufIndex::open(path, test_block_size);
    ASSERT_TRUE(index.ok()) << index.status();
    const Result<TensorReader> reader = TensorReader::open(*index);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const TensorInfo& norm = *index->find_tensor("blk.0.attn_norm.weight");
    std::vector<float> floats(2);
    ASSERT_TRUE(reader->read(norm, 4, std::as_writable_bytes(std::span(floats))).ok());
    EXPECT_THAT(floats, testing::ElementsAre(2.0F, 3.0F));
    EXPECT_EQ(reader->read_all(*index->find_tensor("output.weight")).value(),
              std::vector<std::byte>(68, std::byte{7}));
    std::vector<std::byte> more(17);
    EXPECT_THAT(std::string(reader->read(norm, 0, more).message()),
                HasSubstr("'blk.0.attn_norm.weight': 17 bytes from byte 0 are not within its 16"));
    EXPECT_FALSE(reader->read(norm, ~std::uint64_t{0}, more).ok());
}

// A file that shrinks while it is read is an error that names the tensor, not a signal.
TEST(GgufIndexFile, ShrinkingFile) {
    const TestDirectory directory;
    const auto path = directory / "m.gguf";
    ASSERT_TRUE(tiny_writer().write(path).ok());
    const GgufIndex index = GgufIndex::open(path, test_block_size).value();
    const TensorReader reader = TensorReader::open(index).value();
    std::filesystem::resize_file(path, index.shards()[0].file_bytes - 1);
    EXPECT_THAT(
        std::string(reader.read_all(*index.find_tensor("output.weight")).status().message()),
        AllOf(HasSubstr("tensor 'output.weight'"), HasSubstr("the file ends at byte")));
    EXPECT_EQ(TensorReader::open(index).status().code(), ErrorCode::kFailedPrecondition);
    const Result<GgufIndex> shorter = GgufIndex::open(path, test_block_size);
    ASSERT_TRUE(shorter.ok()) << shorter.status();
    EXPECT_THAT(std::string(TensorReader::open(*shorter).status().message()),
                AllOf(HasSubstr("m.gguf: tensor 'output.weight'"), HasSubstr("1 bytes missing")));
}

TEST(GgufIndexFile, OnlyRegularFiles) {
    const TestDirectory directory;
    const auto pipe = directory / "pipe.gguf";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THAT(message_of(GgufIndex::open(pipe, test_block_size)), HasSubstr("a pipe"));
    EXPECT_THAT(message_of(GgufIndex::open("/dev/zero", test_block_size)), HasSubstr("a device"));
    EXPECT_EQ(GgufIndex::open(directory / "no.gguf", test_block_size).status().code(),
              ErrorCode::kNotFound);
    const auto loop = directory / "loop.gguf";
    std::filesystem::create_symlink(loop, loop);
    EXPECT_FALSE(GgufIndex::open(loop, test_block_size).ok());
}

// Lengths that a huge (sparse) file would cover are still bounded.
TEST(GgufIndexFile, HugeSparseFile) {
    const TestDirectory directory;
    const auto path = directory / "m.gguf";
    ByteWriter writer;
    writer.write_bytes(as_bytes("GGUF"));
    writer.write(std::uint32_t{3});
    writer.write(std::uint64_t{0});
    writer.write(std::uint64_t{1});
    writer.write(std::uint64_t{1});
    writer.write_bytes(as_bytes("k"));
    writer.write(ValueType::String);
    writer.write(std::uint64_t{1} << 36);
    ASSERT_TRUE(write_file_atomically(path, writer.take()).ok());
    std::filesystem::resize_file(path, std::uint64_t{1} << 37);
    EXPECT_THAT(message_of(GgufIndex::open(path, test_block_size)),
                HasSubstr("limit for metadata and tensor table"));
}

}  // namespace
}  // namespace artel::gguf
