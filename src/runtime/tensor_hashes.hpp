// SPDX-License-Identifier: Apache-2.0
// TensorHashes: the manifest of one model file: XXH3-128 of each tensor's bytes, so that two copies
// can be compared tensor by tensor. A hash is computed when it is first asked for, and kept in
// STATE_DIR/manifests under the file's key (path, size, mtime in ns and inode of each shard): a
// second start hashes nothing, and a file that was touched is hashed anew. Against accidents only.
// Not thread-safe: one thread asks. Both sides of a cluster have one, each of its own file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "runtime/model_file.hpp"

namespace artel::runtime {

class TensorHashes {
  public:
    /// With what an earlier run left in the state dir, if it is of this very file. An empty state
    /// dir: nothing is kept.
    TensorHashes(std::shared_ptr<const ModelFile> file, const std::filesystem::path& state_dir);
    ~TensorHashes();

    /// Errors: those of reading; InvalidArgument (no such tensor).
    Result<protocol::Hash128> of(std::uint32_t tensor);
    /// How many tensors were read for their hash by this object.
    std::size_t computed() const { return computed_; }

  private:
    void restore();
    void save();
    Result<protocol::Hash128> compute(std::uint32_t tensor) const;

    std::shared_ptr<const ModelFile> file_;
    std::filesystem::path path_;  // of the manifest; empty: none is kept
    std::vector<std::byte> key_;
    std::vector<std::optional<protocol::Hash128>> known_;
    std::size_t computed_ = 0;
    bool has_unsaved_ = false;
    TimePoint last_saved_{};
};

inline constexpr std::uint64_t kManifestEntryBytes = 16;  // ModelPart::Manifest on the wire

/// Which file this is, as long as this machine runs: equal for two processes that have opened the
/// same one, and for nobody else. All zero where that cannot be told.
protocol::Hash128 file_identity(const ModelFile& file);

}  // namespace artel::runtime
