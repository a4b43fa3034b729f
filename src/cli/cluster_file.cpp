// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_file.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/byte_count.hpp"
#include "base/file.hpp"
#include "cluster/limits.hpp"

namespace artel::cli {
namespace {

constexpr std::uint64_t kFileBytesMax = 1U << 20;
constexpr std::array<std::string_view, 5> kWorkerKeys = {"name", "memory", "bandwidth", "flops",
                                                         "machine"};

/// Errors of one file, each with the line it is about.
class Place {
  public:
    Place(const std::string& path, const toml::node& node)
        : text_(fmt::format("{}:{}", path, node.source().begin.line)) {}
    Error error(std::string_view key, std::string_view message) const {
        return invalid_argument("{}: {}: {}", text_, key, message);
    }

  private:
    std::string text_;
};

Result<toml::table> parse(const std::string& source, const std::string& path) {
    try {
        return toml::parse(source, path);
    } catch (const toml::parse_error& error) {
        return invalid_argument("{}:{}: {}", path, error.source().begin.line, error.description());
    }
}

/// "14GiB" or a whole number; 0 is refused, for nothing can be planned with it.
Result<std::uint64_t> byte_amount(const std::string& path, std::string_view key,
                                  const toml::node& node) {
    const Place place(path, node);
    if (const auto number = node.value_exact<std::int64_t>(); number && *number > 0)
        return static_cast<std::uint64_t>(*number);
    const auto text = node.value_exact<std::string>();
    if (!text) return place.error(key, "expected a size such as \"14GiB\" or a number above 0");
    const auto bytes = parse_byte_count(*text);
    if (!bytes.ok()) return place.error(key, std::string(bytes.status().message()));
    if (*bytes == 0) return place.error(key, "is 0");
    return *bytes;
}

Result<std::uint64_t> flops(const std::string& path, const toml::node& node) {
    const auto value = node.value<double>();  // whole numbers too
    if (!value || !std::isfinite(*value) || *value < 1 || *value > 1e18)
        return Place(path, node).error("flops", "expected a number from 1 to 1e18, e.g. 1e12");
    return static_cast<std::uint64_t>(*value);
}

Result<std::string> text(const std::string& path, std::string_view key, const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    if (!value || value->empty() || value->size() > 64)
        return Place(path, node).error(key, "expected a text of 1 to 64 bytes");
    return *value;
}

Result<cluster::WorkerProfile> read_worker(const std::string& path, const toml::table& table) {
    for (const auto& [key, value] : table)
        if (std::find(kWorkerKeys.begin(), kWorkerKeys.end(), key.str()) == kWorkerKeys.end())
            return Place(path, value)
                .error(key.str(),
                       "no such key; expected name, memory, bandwidth, flops or machine");
    cluster::WorkerProfile worker;
    const toml::node* const name = table.get("name");
    const toml::node* const memory = table.get("memory");
    if (name == nullptr) return Place(path, table).error("name", "is missing");
    if (memory == nullptr) return Place(path, table).error("memory", "is missing");
    ARTEL_ASSIGN(worker.name, text(path, "name", *name));
    ARTEL_ASSIGN(worker.memory_bytes, byte_amount(path, "memory", *memory));
    worker.node = protocol::node_id(worker.name);
    if (const toml::node* const node = table.get("bandwidth")) {
        ARTEL_ASSIGN(worker.bandwidth_bytes_per_second, byte_amount(path, "bandwidth", *node));
    }
    if (const toml::node* const node = table.get("flops")) {
        ARTEL_ASSIGN(worker.flops_per_second, flops(path, *node));
    }
    if (const toml::node* const node = table.get("machine")) {
        ARTEL_ASSIGN(worker.machine_id, text(path, "machine", *node));
    }
    return worker;
}

Error check_unlike(const std::string& path, const toml::node& node,
                   const std::vector<cluster::WorkerProfile>& workers,
                   const cluster::WorkerProfile& worker) {
    for (const cluster::WorkerProfile& other : workers)
        if (other.name == worker.name)
            return Place(path, node).error("name", fmt::format("{} is there twice", worker.name));
    return ok();
}

}  // namespace

Result<std::vector<cluster::WorkerProfile>> read_cluster_file(const std::string& path) {
    ARTEL_ASSIGN(const std::string source, read_file(path, kFileBytesMax));
    ARTEL_ASSIGN(const toml::table root, parse(source, path));
    for (const auto& [key, value] : root)
        if (key.str() != "worker")
            return Place(path, value).error(key.str(), "no such key; expected [[worker]]");
    const toml::array* const list = root["worker"].as_array();
    if (list == nullptr || list->empty() || list->size() > cluster::kWorkersMax)
        return invalid_argument("{}: expected 1 to {} tables [[worker]]", path,
                                cluster::kWorkersMax);
    std::vector<cluster::WorkerProfile> workers;
    for (const toml::node& entry : *list) {
        if (!entry.is_table()) return Place(path, entry).error("worker", "expected [[worker]]");
        ARTEL_ASSIGN(cluster::WorkerProfile worker, read_worker(path, *entry.as_table()));
        ARTEL_TRY(check_unlike(path, entry, workers, worker));
        workers.push_back(std::move(worker));
    }
    return workers;
}

}  // namespace artel::cli
