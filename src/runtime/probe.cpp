// SPDX-License-Identifier: Apache-2.0
#include "runtime/probe.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "runtime/model_profile.hpp"

namespace artel::runtime {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::string read_text(const std::string& path) {
    std::ifstream file(path);  // /proc and /sys files have no size
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::uint64_t number_in(std::string_view text) {
    std::uint64_t number = kUnlimited;
    while (!text.empty() && (text.front() < '0' || text.front() > '9')) text.remove_prefix(1);
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::uint64_t memory_available() {
    const std::string text = read_text("/proc/meminfo");
    const std::size_t place = text.find("MemAvailable:");
    if (place == std::string::npos) return 1ULL << 30;
    return number_in(std::string_view(text).substr(place)) * 1024;
}

/// What the control group (version 2, this process's) still has room for.
std::uint64_t control_group_room() {
    const std::string membership = read_text("/proc/self/cgroup");
    const std::size_t place = membership.find("0::");
    if (place == std::string::npos) return kUnlimited;
    const std::string group =
        membership.substr(place + 3, membership.find('\n', place) - place - 3);
    std::uint64_t room = kUnlimited;
    for (std::string path = group; !path.empty(); path = path.substr(0, path.rfind('/'))) {
        const std::string base = "/sys/fs/cgroup" + (path == "/" ? "" : path);
        const std::string most = read_text(base + "/memory.max");
        if (!most.empty() && most.front() != 'm') {  // "max"
            const std::uint64_t limit = number_in(most);
            const std::uint64_t used = number_in(read_text(base + "/memory.current"));
            room = std::min(room, used < limit ? limit - used : 0);
        }
        if (path == "/") break;
    }
    return room;
}

}  // namespace

std::uint64_t available_memory_bytes() {
    return std::min(memory_available(), control_group_room());
}

std::string machine_id() {
    std::string id = read_text("/proc/sys/kernel/random/boot_id");
    while (!id.empty() && (id.back() == '\n' || id.back() == ' ')) id.pop_back();
    return id.empty() ? "unknown" : id;
}

std::uint64_t read_bandwidth(std::uint32_t threads) {
    constexpr std::size_t kBytes = 48U << 20;
    std::vector<std::uint64_t> memory(kBytes / 8, 1);
    std::vector<std::uint64_t> sums(threads);
    const std::size_t piece = memory.size() / threads;
    const auto pass = [&] {
        const auto begin = std::chrono::steady_clock::now();
        std::vector<std::thread> readers;
        for (std::uint32_t t = 0; t < threads; ++t)
            readers.emplace_back([&, t] {
                std::uint64_t sum[8] = {};
                for (std::size_t i = t * piece; i + 8 <= (t + 1) * piece; i += 8)
                    for (std::size_t lane = 0; lane < 8; ++lane) sum[lane] += memory[i + lane];
                for (const std::uint64_t part : sum) sums[t] += part;
            });
        for (std::thread& reader : readers) reader.join();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    double seconds = pass();
    for (int again = 0; again < 4; ++again)
        seconds = std::min(seconds, pass());  // others are busy too
    std::uint64_t checked = 0;
    for (const std::uint64_t sum : sums) checked += sum;
    return checked == 0
               ? 0
               : static_cast<std::uint64_t>(static_cast<double>(kBytes) / std::max(seconds, 1e-6));
}

protocol::WorkerReport probe_worker(std::uint64_t memory_bytes, std::uint32_t threads,
                                    const std::string& arithmetic_class,
                                    const std::string& device_name) {
    // Kernels reach about half of what a plain read loop does; a multiply-add a cycle and lane is
    // optimistic.
    constexpr double kEfficiency = 0.5;
    constexpr std::uint64_t kFlopsAThread = 16'000'000'000;
    protocol::WorkerReport report;
    report.machine_id = machine_id();
    report.machine_memory_bytes = available_memory_bytes();
    report.threads = threads;
    protocol::DeviceReport device;
    device.name = device_name;
    device.memory_bytes = memory_bytes > 0 ? memory_bytes : report.machine_memory_bytes;
    device.bandwidth_bytes_per_second =
        static_cast<std::uint64_t>(static_cast<double>(read_bandwidth(threads)) * kEfficiency);
    device.flops_per_second = kFlopsAThread * threads;
    device.arithmetic_class = arithmetic_class;
    report.devices.push_back(std::move(device));
    report.architectures = architecture_names();
    report.formats = format_names();
    return report;
}

}  // namespace artel::runtime
