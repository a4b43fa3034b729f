// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a GGUF file (one file, or two as a split model). The first byte says
// how the rest is cut. Whatever opens is walked as a reader would: all metadata, all getters, all
// tensor infos, which must hold what the header of GgufIndex promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "gguf/gguf_index.hpp"
#include "quant/type_names.hpp"

namespace artel::gguf {
namespace {

template <class T>
void read_as(const Metadata& metadata, const std::string& key) {
    ARTEL_CHECK(metadata.find<T>(key).ok() == metadata.get<T>(key).ok(), "find and get disagree");
    ARTEL_CHECK(metadata.find_array<T>(key).ok() == metadata.get_array<T>(key).ok(),
                "find_array and get_array disagree");
    (void)metadata.get_each<T>(key, 3).ok();
}

void walk(const GgufIndex& index) {
    for (const Metadata::Entry& entry : index.metadata().entries()) {
        for (std::size_t i = 0; i < entry.value.count(); ++i) (void)entry.value.element(i);
        read_as<bool>(index.metadata(), entry.key);
        read_as<std::uint32_t>(index.metadata(), entry.key);
        read_as<std::int64_t>(index.metadata(), entry.key);
        read_as<float>(index.metadata(), entry.key);
        read_as<std::string_view>(index.metadata(), entry.key);
    }
    std::uint64_t sum = 0;
    for (const TensorInfo& tensor : index.tensors()) {
        const Shard& shard = index.shards()[tensor.shard];
        ARTEL_CHECK(tensor.offset >= shard.data_offset, "tensor before the data");
        ARTEL_CHECK(tensor.offset % 8 == 0, "tensor not aligned");
        ARTEL_CHECK(tensor.bytes > 0 && tensor.row_bytes() * tensor.rows() == tensor.bytes,
                    "tensor is not whole rows");
        ARTEL_CHECK(index.find_tensor(tensor.name) == &tensor, "tensor not found by its name");
        sum += tensor.bytes;
    }
    ARTEL_CHECK(sum == index.tensor_bytes(), "sum of bytes");
    (void)check_data_present(index).ok();
}

}  // namespace
}  // namespace artel::gguf

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace artel;
    if (size == 0) return 0;
    const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
    std::vector<std::span<const std::byte>> shards = {bytes};
    if (data[0] != 0) {  // two parts
        const std::size_t cut = bytes.size() * data[0] / 256;
        shards = {bytes.first(cut), bytes.subspan(cut)};
    }
    const Result<gguf::GgufIndex> index = gguf::GgufIndex::parse(shards, quant::block_size_of);
    if (index.ok()) gguf::walk(*index);
    return 0;
}
