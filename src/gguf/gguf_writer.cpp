// SPDX-License-Identifier: Apache-2.0
#include "gguf/gguf_writer.hpp"

#include "base/file.hpp"

namespace artel::gguf {

namespace {

void write_string(ByteWriter& writer, std::string_view text) {
    writer.write(std::uint64_t{text.size()});
    writer.write_bytes(as_bytes(text));
}

template <MetadataType T>
constexpr ValueType value_type() {
    if constexpr (std::same_as<T, bool>) return ValueType::Bool;
    if constexpr (std::same_as<T, std::string_view>) return ValueType::String;
    if constexpr (std::same_as<T, float>) return ValueType::F32;
    if constexpr (std::same_as<T, double>) return ValueType::F64;
    if constexpr (std::same_as<T, std::uint8_t>) return ValueType::U8;
    if constexpr (std::same_as<T, std::int8_t>) return ValueType::I8;
    if constexpr (std::same_as<T, std::uint16_t>) return ValueType::U16;
    if constexpr (std::same_as<T, std::int16_t>) return ValueType::I16;
    if constexpr (std::same_as<T, std::uint32_t>) return ValueType::U32;
    if constexpr (std::same_as<T, std::int32_t>) return ValueType::I32;
    if constexpr (std::same_as<T, std::uint64_t>) return ValueType::U64;
    if constexpr (std::same_as<T, std::int64_t>) return ValueType::I64;
}

template <MetadataType T>
void write_element(ByteWriter& writer, T value) {
    if constexpr (std::same_as<T, std::string_view>)
        write_string(writer, value);
    else
        writer.write(value);
}

void pad(ByteWriter& writer, std::uint32_t alignment) {
    while (writer.size() % alignment != 0) writer.write(std::uint8_t{0});
}

}  // namespace

template <MetadataType T>
void GgufWriter::add_metadata(std::string_view key, T value) {
    write_string(metadata_, key);
    metadata_.write(value_type<T>());
    write_element(metadata_, value);
    ++entry_count_;
}

template <MetadataType T>
void GgufWriter::add_metadata_array(std::string_view key, const std::vector<T>& values) {
    write_string(metadata_, key);
    metadata_.write(ValueType::Array);
    metadata_.write(value_type<T>());
    metadata_.write(std::uint64_t{values.size()});
    for (const T value : values) write_element<T>(metadata_, value);
    ++entry_count_;
}

void GgufWriter::add_tensor(std::string_view name, std::vector<std::uint64_t> dims,
                            std::uint32_t type_id, std::span<const std::byte> bytes) {
    tensors_.push_back({std::string(name), std::move(dims), type_id,
                        std::vector<std::byte>(bytes.begin(), bytes.end())});
}

void GgufWriter::add_tensor(std::string_view name, std::vector<std::uint64_t> dims,
                            std::span<const float> values) {
    add_tensor(name, std::move(dims), 0, std::as_bytes(values));
}

std::vector<std::byte> GgufWriter::to_bytes() const {
    ByteWriter writer;
    writer.write_bytes(as_bytes("GGUF"));
    writer.write(std::uint32_t{3});
    writer.write(std::uint64_t{tensors_.size()});
    writer.write(entry_count_);
    writer.write_bytes(ByteWriter(metadata_).take());
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
        write_string(writer, tensor.name);
        writer.write(static_cast<std::uint32_t>(tensor.dims.size()));
        for (const std::uint64_t dim : tensor.dims) writer.write(dim);
        writer.write(tensor.type_id);
        writer.write(offset);
        offset = (offset + tensor.bytes.size() + alignment_ - 1) / alignment_ * alignment_;
    }
    for (const Tensor& tensor : tensors_) {
        pad(writer, alignment_);
        writer.write_bytes(tensor.bytes);
    }
    return writer.take();
}

Error GgufWriter::write(const std::filesystem::path& path) const {
    return write_file_atomically(path, to_bytes());
}

#define ARTEL_WRITER_ADDERS(T)                                      \
    template void GgufWriter::add_metadata<T>(std::string_view, T); \
    template void GgufWriter::add_metadata_array<T>(std::string_view, const std::vector<T>&);
ARTEL_WRITER_ADDERS(bool)
ARTEL_WRITER_ADDERS(std::uint8_t)
ARTEL_WRITER_ADDERS(std::int8_t)
ARTEL_WRITER_ADDERS(std::uint16_t)
ARTEL_WRITER_ADDERS(std::int16_t)
ARTEL_WRITER_ADDERS(std::uint32_t)
ARTEL_WRITER_ADDERS(std::int32_t)
ARTEL_WRITER_ADDERS(std::uint64_t)
ARTEL_WRITER_ADDERS(std::int64_t)
ARTEL_WRITER_ADDERS(float)
ARTEL_WRITER_ADDERS(double)
ARTEL_WRITER_ADDERS(std::string_view)
#undef ARTEL_WRITER_ADDERS

}  // namespace artel::gguf
