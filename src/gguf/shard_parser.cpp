// SPDX-License-Identifier: Apache-2.0
#include "gguf/shard_parser.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/byte_count.hpp"
#include "base/bytes.hpp"
#include "gguf/index_reader.hpp"
#include "gguf/limits.hpp"
#include "gguf/names.hpp"

namespace artel::gguf {

namespace {

constexpr std::uint64_t kOffsetMax = std::numeric_limits<std::int64_t>::max();
// A key of one byte, its length, a type and a value of one byte.
constexpr std::uint64_t kEntryBytesMin = 8 + 1 + 4 + 1;
// A name of one byte, its length, rank, one dimension, type and offset.
constexpr std::uint64_t kTensorBytesMin = 8 + 1 + 4 + 8 + 4 + 8;

struct Header {
    std::uint32_t version;
    std::uint64_t tensor_count;
    std::uint64_t entry_count;
};

Error check_magic(std::string_view magic) {
    if (magic == "GGUF") return ok();
    if (magic == "tjgg" || magic == "lmgg" || magic == "fmgg")
        return unimplemented(
            "this is a file of the older GGML kind ('{}'); convert the model to "
            "GGUF",
            magic);
    if (magic == "vers")
        return invalid_argument(
            "this looks like a Git LFS pointer, not the model; run git lfs "
            "pull");
    return invalid_argument("not a GGUF file: it starts with {}, expected 'GGUF'",
                            quote_name(magic));
}

Error check_version(std::uint32_t version) {
    if (version == 2 || version == 3) return ok();
    if ((version & 0xFFFFU) == 0 && version != 0)
        return unimplemented(
            "the file is big-endian (its version reads {:#010x}); convert it to "
            "little-endian",
            version);
    return unimplemented("GGUF version {} is not supported, only 2 and 3 are", version);
}

Error check_count(std::string_view noun, std::uint64_t count, std::uint64_t count_max,
                  std::uint64_t bytes_min, std::uint64_t remaining) {
    if (count > count_max)
        return invalid_argument("{} count {} is over the limit of {}", noun, count, count_max);
    if (count * bytes_min > remaining)
        return data_loss("{} count {} needs at least {} bytes, the file has {} more", noun, count,
                         count * bytes_min, remaining);
    return ok();
}

Result<Header> read_header(const ByteSource& source, IndexReader& reader) {
    if (source.bytes() == 0) return data_loss("the file is empty");
    std::string magic;
    ARTEL_TRY(with_context(reader.append(4, magic), "magic"));
    ARTEL_TRY(check_magic(magic));
    ARTEL_ASSIGN(const auto version, reader.read<std::uint32_t>());
    ARTEL_TRY(check_version(version));
    ARTEL_ASSIGN(const auto tensor_count, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(const auto entry_count, reader.read<std::uint64_t>());
    ARTEL_TRY(
        check_count("tensor", tensor_count, kTensorsMax, kTensorBytesMin, reader.remaining()));
    ARTEL_TRY(
        check_count("metadata", entry_count, kEntriesMax, kEntryBytesMin, reader.remaining()));
    return Header{version, tensor_count, entry_count};
}

Result<ValueType> read_value_type(IndexReader& reader) {
    ARTEL_ASSIGN(const auto type, reader.read<std::uint32_t>());
    if (type >= kValueTypeCount)
        return invalid_argument("value type {} does not exist (0 to {} do)", type,
                                kValueTypeCount - 1);
    return static_cast<ValueType>(type);
}

Result<Value> read_numbers(IndexReader& reader, ValueType type, std::uint64_t count,
                           bool is_array) {
    const auto bytes = checked_multiply(count, element_bytes_min(type));
    if (!bytes) return invalid_argument("an array of {} {} is too large", count, type_name(type));
    std::string numbers;
    ARTEL_TRY(reader.append(*bytes, numbers));
    if (type == ValueType::Bool)
        for (std::size_t i = 0; i < numbers.size(); ++i)
            if (numbers[i] != 0 && numbers[i] != 1)
                return invalid_argument("a bool is {}, expected 0 or 1",
                                        static_cast<unsigned char>(numbers[i]));
    return Value::of_numbers(type, std::move(numbers), is_array);
}

Result<Value> read_strings(IndexReader& reader, std::uint64_t count, bool is_array) {
    const auto bytes_min = checked_multiply(count, element_bytes_min(ValueType::String));
    if (!bytes_min) return invalid_argument("an array of {} strings is too large", count);
    ARTEL_TRY(reader.check_remaining(*bytes_min));
    std::string text;
    std::vector<std::uint32_t> ends;  // 32 bits hold them, since kIndexBytesMax does
    ends.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
        ARTEL_ASSIGN(const auto length, reader.read<std::uint64_t>());
        if (const Error error = reader.append(length, text); !error.ok())
            return with_context(error, fmt::format("string {} of {}", i + 1, count));
        ends.push_back(static_cast<std::uint32_t>(text.size()));
    }
    return Value::of_strings(std::move(text), std::move(ends), is_array);
}

Result<Value> read_elements(IndexReader& reader, ValueType type, std::uint64_t count,
                            bool is_array) {
    if (type == ValueType::String) return read_strings(reader, count, is_array);
    return read_numbers(reader, type, count, is_array);
}

Result<Value> read_value(IndexReader& reader) {
    ARTEL_ASSIGN(const ValueType type, read_value_type(reader));
    if (type != ValueType::Array) return read_elements(reader, type, 1, /*is_array=*/false);
    ARTEL_ASSIGN(const ValueType element_type, read_value_type(reader));
    if (element_type == ValueType::Array)
        return invalid_argument("an array of arrays is not allowed");
    ARTEL_ASSIGN(const auto count, reader.read<std::uint64_t>());
    return read_elements(reader, element_type, count, /*is_array=*/true);
}

Error read_entry(IndexReader& reader, Metadata& metadata) {
    Result<std::string> key = reader.read_string(kKeyBytesMax);
    if (!key.ok()) return with_context(key.status(), "key");
    ARTEL_TRY(check_name("key", *key));
    Result<Value> value = read_value(reader);
    if (!value.ok()) return with_context(value.status(), quote_name(*key));
    return metadata.add(*std::move(key), *std::move(value));
}

Result<Metadata> read_metadata(IndexReader& reader, std::uint64_t count) {
    Metadata metadata;
    for (std::uint64_t i = 0; i < count; ++i)
        if (const Error error = read_entry(reader, metadata); !error.ok())
            return with_context(error, fmt::format("metadata entry {} of {}", i + 1, count));
    return metadata;
}

Result<std::uint32_t> read_alignment(const Metadata& metadata) {
    ARTEL_ASSIGN(const auto alignment, metadata.find<std::uint32_t>("general.alignment"));
    if (!alignment) return kAlignmentDefault;
    if (!std::has_single_bit(*alignment) || *alignment < kAlignmentMin ||
        *alignment > kAlignmentMax)
        return invalid_argument(
            "metadata key 'general.alignment': {}, expected a power of two "
            "from {} to {}",
            *alignment, kAlignmentMin, kAlignmentMax);
    return *alignment;
}

Error read_dims(IndexReader& reader, TensorInfo& tensor) {
    ARTEL_ASSIGN(tensor.rank, reader.read<std::uint32_t>());
    if (tensor.rank < 1 || tensor.rank > kRankMax)
        return invalid_argument("{} dimensions, expected 1 to {}", tensor.rank, kRankMax);
    std::uint64_t elements = 1;
    for (std::uint32_t i = 0; i < tensor.rank; ++i) {
        ARTEL_ASSIGN(tensor.dims[i], reader.read<std::uint64_t>());
        if (tensor.dims[i] == 0) return invalid_argument("dimension {} is 0", i);
        const auto product = checked_multiply(elements, tensor.dims[i]);
        if (!product || *product > kOffsetMax)
            return invalid_argument("the product of its dimensions does not fit in 63 bits");
        elements = *product;
    }
    return ok();
}

Error set_bytes(TensorInfo& tensor, BlockSizeLookup block_size) {
    ARTEL_ASSIGN(const BlockSize block, block_size(tensor.type_id));
    if (tensor.columns() % block.elements != 0)
        return invalid_argument("rows of {} elements are not whole blocks of {} (type {})",
                                tensor.columns(), block.elements, tensor.type_id);
    const auto bytes = checked_multiply(tensor.elements() / block.elements, block.bytes);
    if (!bytes || *bytes > kOffsetMax)
        return invalid_argument("its size in bytes does not fit in 63 bits");
    tensor.bytes = *bytes;
    return ok();
}

/// Reads the rest of one line of the table; the offset is still from the start of the data.
Error read_tensor(IndexReader& reader, BlockSizeLookup block_size, TensorInfo& tensor) {
    ARTEL_TRY(read_dims(reader, tensor));
    ARTEL_ASSIGN(tensor.type_id, reader.read<std::uint32_t>());
    ARTEL_ASSIGN(tensor.offset, reader.read<std::uint64_t>());
    return set_bytes(tensor, block_size);
}

Result<std::vector<TensorInfo>> read_tensors(IndexReader& reader, std::uint64_t count,
                                             BlockSizeLookup block_size) {
    std::vector<TensorInfo> tensors;
    tensors.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
        std::string place = fmt::format("tensor {} of {}", i + 1, count);
        Result<std::string> name = reader.read_string(kTensorNameBytesMax);
        if (!name.ok()) return with_context(name.status(), place + ": name");
        ARTEL_TRY(with_context(check_name("name", *name), place));
        TensorInfo& tensor = tensors.emplace_back();
        tensor.name = *std::move(name);
        ARTEL_TRY(with_context(read_tensor(reader, block_size, tensor),
                               fmt::format("{} {}", place, quote_name(tensor.name))));
    }
    return tensors;
}

Error place_tensor(const Shard& shard, TensorInfo& tensor) {
    if (tensor.offset % shard.alignment != 0)
        return invalid_argument("offset {} is not a multiple of the alignment {}", tensor.offset,
                                shard.alignment);
    const auto offset = checked_add(shard.data_offset, tensor.offset);
    const auto end = offset ? checked_add(*offset, tensor.bytes) : std::nullopt;
    if (!end || *end > kOffsetMax)
        return invalid_argument("offset {} and {} bytes do not fit in 63 bits", tensor.offset,
                                tensor.bytes);
    tensor.offset = *offset;
    return ok();
}

Error check_overlap(const std::vector<TensorInfo>& tensors) {
    std::vector<const TensorInfo*> ordered;
    ordered.reserve(tensors.size());
    for (const TensorInfo& tensor : tensors) ordered.push_back(&tensor);
    std::ranges::sort(ordered, {}, &TensorInfo::offset);
    for (std::size_t i = 1; i < ordered.size(); ++i) {
        const TensorInfo& left = *ordered[i - 1];
        const TensorInfo& right = *ordered[i];
        if (left.offset + left.bytes > right.offset)
            return invalid_argument("tensors {} (bytes {} to {}) and {} (from byte {}) overlap",
                                    quote_name(left.name), left.offset, left.offset + left.bytes,
                                    quote_name(right.name), right.offset);
    }
    return ok();
}

/// `cat` of several files looks like one file with bytes after its last tensor.
Error check_not_concatenated(const ByteSource& source, const ParsedShard& parsed) {
    std::uint64_t end = parsed.shard.index_bytes;
    for (const TensorInfo& tensor : parsed.tensors)
        end = std::max(end, tensor.offset + tensor.bytes);
    const std::uint64_t padded =
        (end + parsed.shard.alignment - 1) / parsed.shard.alignment * parsed.shard.alignment;
    for (const std::uint64_t place : {end, padded}) {
        std::byte magic[4];
        if (place > source.bytes() || source.bytes() - place < sizeof(magic)) continue;
        ARTEL_TRY(source.read(place, magic));
        if (as_text(magic) == "GGUF")
            return invalid_argument(
                "another GGUF file starts at byte {}: these are files put one "
                "after another, not merged; keep the parts of a split model "
                "as separate files",
                place);
    }
    return ok();
}

}  // namespace

Result<ParsedShard> parse_shard(const ByteSource& source, BlockSizeLookup block_size) {
    IndexReader reader(source);
    ParsedShard parsed;
    Shard& shard = parsed.shard;
    ARTEL_ASSIGN(const Header header, read_header(source, reader));
    ARTEL_ASSIGN(parsed.metadata, read_metadata(reader, header.entry_count));
    ARTEL_ASSIGN(shard.alignment, read_alignment(parsed.metadata));
    ARTEL_ASSIGN(parsed.tensors, read_tensors(reader, header.tensor_count, block_size));
    shard.file_bytes = source.bytes();
    shard.index_bytes = reader.position();
    shard.data_offset =
        (shard.index_bytes + shard.alignment - 1) / shard.alignment * shard.alignment;
    shard.version = header.version;
    shard.tensor_count = static_cast<std::uint32_t>(header.tensor_count);
    for (TensorInfo& tensor : parsed.tensors)
        ARTEL_TRY(with_context(place_tensor(shard, tensor),
                               fmt::format("tensor {}", quote_name(tensor.name))));
    ARTEL_TRY(check_overlap(parsed.tensors));
    ARTEL_TRY(check_not_concatenated(source, parsed));
    return parsed;
}

}  // namespace artel::gguf
