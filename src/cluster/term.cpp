// SPDX-License-Identifier: Apache-2.0
#include "cluster/term.hpp"

#include "base/bytes.hpp"

namespace artel::cluster {

namespace {

constexpr std::size_t kRecordBytes = 24;

std::uint64_t checksum(const protocol::Epoch& epoch) {
    // Any mixing will do: it only has to catch a torn or zeroed record.
    std::uint64_t mixed = 0xA27E10EC0DEULL;
    for (const std::uint64_t value : {epoch.term, epoch.number}) {
        mixed = (mixed ^ value) * 0x9E3779B97F4A7C15ULL;
        mixed ^= mixed >> 29U;
    }
    return mixed;
}

}  // namespace

std::vector<std::byte> write_epoch_record(const protocol::Epoch& epoch) {
    ByteWriter writer;
    writer.write(epoch.term);
    writer.write(epoch.number);
    writer.write(checksum(epoch));
    return writer.take();
}

Result<protocol::Epoch> read_epoch_record(std::span<const std::byte> record) {
    if (record.size() != kRecordBytes)
        return data_loss("epoch record has {} bytes, expected {}", record.size(), kRecordBytes);
    ByteReader reader(record);
    protocol::Epoch epoch;
    ARTEL_ASSIGN(epoch.term, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(epoch.number, reader.read<std::uint64_t>());
    ARTEL_ASSIGN(const auto stored, reader.read<std::uint64_t>());
    if (stored != checksum(epoch)) return data_loss("epoch record is damaged (checksum)");
    return epoch;
}

}  // namespace artel::cluster
