// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_hashes.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "protocol/hash.hpp"
#include "runtime/event_loop.hpp"

namespace artel::runtime {
namespace {

constexpr std::uint64_t kMagic = 0x31484C4554524131ULL;  // of the manifest's format
constexpr std::uint64_t kManifestBytesMax = 64ULL << 20;
constexpr Duration kSaveEvery = std::chrono::seconds(5);

/// Path, size, time of change and inode of every shard. Empty: one cannot be looked at.
std::vector<std::byte> key_of(const gguf::GgufIndex& index) {
    ByteWriter writer;
    for (const gguf::Shard& shard : index.shards()) {
        std::error_code failure;
        const std::string path = std::filesystem::absolute(shard.path, failure).string();
        struct stat now {};
        if (::stat(path.c_str(), &now) != 0) return {};
        writer.write<std::uint64_t>(path.size());
        writer.write_bytes(as_bytes(path));
        writer.write<std::int64_t>(now.st_size);
        writer.write<std::int64_t>(now.st_mtim.tv_sec);
        writer.write<std::int64_t>(now.st_mtim.tv_nsec);
        writer.write<std::uint64_t>(now.st_ino);
    }
    return writer.take();
}

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

}  // namespace

protocol::Hash128 file_identity(const ModelFile& file) {
    const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
    if (boot.empty()) return {};
    ByteWriter writer;
    writer.write_bytes(as_bytes(boot));
    for (const gguf::Shard& shard : file.index().shards()) {
        struct stat now {};
        if (::stat(shard.path.c_str(), &now) != 0) return {};
        writer.write<std::uint64_t>(now.st_dev);
        writer.write<std::uint64_t>(now.st_ino);
        writer.write<std::int64_t>(now.st_size);
        writer.write<std::int64_t>(now.st_mtim.tv_sec);
        writer.write<std::int64_t>(now.st_mtim.tv_nsec);
    }
    return protocol::hash_bytes(writer.take());
}

TensorHashes::TensorHashes(std::shared_ptr<const ModelFile> file,
                           const std::filesystem::path& state_dir)
    : file_(std::move(file)), key_(key_of(file_->index())) {
    known_.resize(file_->index().tensors().size());
    if (state_dir.empty() || key_.empty()) return;
    std::error_code failure;
    const std::string shown =
        std::filesystem::absolute(file_->index().shards().front().path, failure).string();
    path_ = state_dir / "manifests" / protocol::to_hex(protocol::hash_bytes(as_bytes(shown)));
    restore();
}

TensorHashes::~TensorHashes() {
    if (has_unsaved_) save();
}

/// The record: u64 magic | u64 bytes of key | key | u64 tensors | (u64 is known, u64 high, u64 low)
/// a tensor | u64 high, u64 low of all before. Whatever does not fit is as if it were not there.
void TensorHashes::restore() {
    const auto text = read_file(path_, kManifestBytesMax);
    if (!text.ok()) return;
    constexpr std::size_t kHashBytes = 16;
    const auto bytes = as_bytes(*text);
    const std::size_t expected = 24 + key_.size() + known_.size() * 24 + kHashBytes;
    if (bytes.size() != expected) return;
    const auto body = bytes.first(bytes.size() - kHashBytes);
    ByteReader reader(bytes);
    const auto number = [&reader] { return reader.read<std::uint64_t>().value_or(0); };
    if (number() != kMagic || number() != key_.size()) return;
    const auto key = reader.read_bytes(key_.size());
    if (!key.ok() || !std::equal(key_.begin(), key_.end(), key->begin())) return;
    if (number() != known_.size()) return;
    std::vector<std::optional<protocol::Hash128>> found(known_.size());
    for (auto& hash : found) {
        const bool is_known = number() == 1;
        const std::uint64_t high = number();
        const std::uint64_t low = number();
        if (is_known) hash = protocol::Hash128{high, low};
    }
    const std::uint64_t high = number();
    const std::uint64_t low = number();
    if (protocol::hash_bytes(body) == protocol::Hash128{high, low}) known_ = std::move(found);
}

void TensorHashes::save() {
    has_unsaved_ = false;
    // Hashes of a file that changed while they were computed are nobody's.
    if (path_.empty() || key_of(file_->index()) != key_) return;
    ByteWriter writer;
    writer.write(kMagic);
    writer.write<std::uint64_t>(key_.size());
    writer.write_bytes(key_);
    writer.write<std::uint64_t>(known_.size());
    for (const auto& hash : known_) {
        writer.write<std::uint64_t>(hash ? 1 : 0);
        writer.write<std::uint64_t>(hash ? hash->high : 0);
        writer.write<std::uint64_t>(hash ? hash->low : 0);
    }
    std::vector<std::byte> record = writer.take();
    const protocol::Hash128 seal = protocol::hash_bytes(record);
    ByteWriter tail;
    tail.write<std::uint64_t>(seal.high);
    tail.write<std::uint64_t>(seal.low);
    const std::vector<std::byte> end = tail.take();
    record.insert(record.end(), end.begin(), end.end());
    Error error = make_private_directory(path_.parent_path());
    if (error.ok()) error = write_file_atomically(path_, record, 0600);
    if (!error.ok())
        log_warning("hashes of the model are not kept", {{"reason", std::string(error.message())}});
}

Result<protocol::Hash128> TensorHashes::compute(std::uint32_t tensor) const {
    constexpr std::uint64_t kPiece = 4U << 20;
    const std::uint64_t bytes = file_->index().tensors()[tensor].bytes;
    protocol::StreamHash hash;
    for (std::uint64_t offset = 0; offset < bytes; offset += kPiece) {
        const auto count = static_cast<std::uint32_t>(std::min(kPiece, bytes - offset));
        std::uint64_t part_bytes = 0;
        ARTEL_ASSIGN(const auto piece,
                     file_->read({protocol::ModelPart::Tensor, tensor, offset, count}, part_bytes));
        hash.add(piece);
    }
    return hash.value();
}

Result<protocol::Hash128> TensorHashes::of(std::uint32_t tensor) {
    if (tensor >= known_.size())
        return invalid_argument("tensor {} of a model with {}", tensor, known_.size());
    if (known_[tensor]) return *known_[tensor];
    ARTEL_ASSIGN(const protocol::Hash128 hash, compute(tensor));
    known_[tensor] = hash;
    ++computed_;
    has_unsaved_ = true;
    const TimePoint now = OsClock().now();
    const bool is_complete =
        std::all_of(known_.begin(), known_.end(), [](const auto& one) { return one.has_value(); });
    if (is_complete || now - last_saved_ >= kSaveEvery) {
        last_saved_ = now;
        save();
    }
    return hash;
}

}  // namespace artel::runtime
