// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_control.hpp"

#include <charconv>
#include <string_view>

#include "base/file.hpp"
#include "cli/cluster_options.hpp"
#include "cli/plan_table.hpp"

namespace artel::cli {
namespace {

std::string status_text(const cluster::Health& health) {
    std::string text =
        fmt::format("{}\n{} requests running, {} waiting, {} steps done, epoch {}.{}\n",
                    health.message, health.requests_running, health.requests_queued,
                    health.steps_done, health.epoch.term, health.epoch.number);
    for (const cluster::WorkerHealth& worker : health.workers)
        if (!worker.status.empty()) text += fmt::format("{}: {}\n", worker.name, worker.status);
    return text + plan_table(plan_view(health));
}

Result<std::string> new_key(std::string_view uses_text, runtime::ClusterService& service) {
    std::uint32_t uses = 0;
    const char* const end = uses_text.data() + uses_text.size();
    const auto [rest, failure] = std::from_chars(uses_text.data(), end, uses);
    if (failure != std::errc() || rest != end || uses == 0 || uses > 64)
        return invalid_argument("a key is for 1 to 64 workers");
    return service.make_join_key(uses);
}

}  // namespace

Result<std::unique_ptr<ServeControl>> ServeControl::open(const std::filesystem::path& state_dir) {
    ARTEL_TRY(check_state_dir(state_dir));
    ARTEL_TRY(make_private_directory(state_dir));
    std::unique_ptr<ServeControl> control(new ServeControl);
    ARTEL_ASSIGN(control->socket_, runtime::ControlSocket::open(
                                       state_dir, [raw = control.get()](const std::string& line) {
                                           return raw->answer(line);
                                       }));
    return control;
}

void ServeControl::attach(runtime::ClusterService& service) {
    const std::lock_guard lock(mutex_);
    service_ = &service;
}

void ServeControl::detach() {
    const std::lock_guard lock(mutex_);
    service_ = nullptr;
}

Result<std::string> ServeControl::answer(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (service_ == nullptr) return unavailable("the server is starting or stopping; ask again");
    if (line == "status") return status_text(service_->requests().health());
    constexpr std::string_view kKey = "key ";
    if (line.starts_with(kKey))
        return new_key(std::string_view(line).substr(kKey.size()), *service_);
    return invalid_argument(
        "this server does not know that command; is it older than this program?");
}

}  // namespace artel::cli
