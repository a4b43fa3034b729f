// SPDX-License-Identifier: Apache-2.0
#include "runtime/record_files.hpp"

#include "base/file.hpp"
#include "cluster/term.hpp"

namespace artel::runtime {

void RecordFiles::put(const std::string& key, std::vector<std::byte> record,
                      std::function<void(cluster::RecordStored)> done) {
    thread_.post([this, key, record = std::move(record), done = std::move(done)] {
        Error error = make_private_directory(state_dir_);
        if (error.ok()) error = write_file_atomically(state_dir_ / key, record, 0600);
        loop_.post([key, error, done] { done({.key = key, .error = error}); });
    });
}

Result<cluster::Epoch> RecordFiles::read_epoch(const std::filesystem::path& state_dir,
                                               const std::string& key) {
    const auto bytes = read_file(state_dir / key, 4096);
    if (bytes.status().code() == ErrorCode::kNotFound) return cluster::Epoch{};
    if (!bytes.ok()) return bytes.status();
    const auto epoch = cluster::read_epoch_record(as_bytes(*bytes));
    if (!epoch.ok())
        return with_context(
            epoch.status(),
            fmt::format("{} is damaged; remove it if no other coordinator of this cluster runs",
                        (state_dir / key).string()));
    return epoch;
}

}  // namespace artel::runtime
