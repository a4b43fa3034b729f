// SPDX-License-Identifier: Apache-2.0
#include "api/api_server.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "api/api_keys.hpp"
#include "api/io_mailbox.hpp"
#include "api/openai_routes.hpp"
#include "api/work_pool.hpp"
#include "base/check.hpp"
#include "base/log.hpp"

namespace artel::api {
namespace {

constexpr std::size_t kOtherDescriptors = 256;  // files, workers, the rest of the process

/// No more connections than descriptors allow, or accept() would fail for the workers too.
std::size_t affordable_connections(std::size_t wanted) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    const std::size_t descriptors = static_cast<std::size_t>(limit.rlim_cur);
    const std::size_t affordable =
        descriptors > 2 * kOtherDescriptors ? descriptors - kOtherDescriptors : descriptors / 2;
    if (affordable < wanted)
        log_warning("fewer API connections than wanted; raise the limit of open files",
                    {{"connections", affordable}, {"open_files", descriptors}});
    return std::min(wanted, affordable);
}

}  // namespace

/// Members in the order of their use: the server goes first, then the pool, then the routes.
class ApiServer::Assembly {
  public:
    Assembly(const ApiOptions& options, ApiDependencies dependencies, ApiKeys keys)
        : pool_({.threads = options.pool_threads, .queued_max = options.queued_prompts_max}),
          routes_({.model = std::move(dependencies.model),
                   .requests = dependencies.requests,
                   .pool = pool_,
                   .keys = std::move(keys),
                   .unix_time = std::move(dependencies.unix_time),
                   .model_created = dependencies.model_created}) {}

    Error listen(const ApiOptions& options) {
        HttpServer::Options http{.listen = options.listen, .limits = options.limits};
        http.limits.connections_max = affordable_connections(http.limits.connections_max);
        ARTEL_ASSIGN(server_, HttpServer::create(std::move(http), routes_));
        mailbox_ = std::make_shared<IoMailbox>(*server_);
        routes_.set_mailbox(mailbox_);
        return ok();
    }
    HttpServer& server() { return *server_; }
    void stop(std::chrono::milliseconds patience) {
        server_->stop(patience);
        pool_.stop();
        mailbox_->close();
    }

  private:
    WorkPool pool_;
    OpenAiRoutes routes_;
    std::unique_ptr<HttpServer> server_;
    std::shared_ptr<IoMailbox> mailbox_;
};

ApiServer::ApiServer(std::unique_ptr<Assembly> assembly) : assembly_(std::move(assembly)) {}

ApiServer::~ApiServer() {
    stop(std::chrono::milliseconds(0));
}

Result<std::unique_ptr<ApiServer>> ApiServer::create(const ApiOptions& options,
                                                     ApiDependencies dependencies) {
    ARTEL_CHECK(dependencies.model.tokenizer != nullptr, "the API needs a tokenizer");
    if (options.key_file && options.has_no_keys_by_choice)
        return invalid_argument("--api-key-file and --no-api-key contradict each other");
    ApiKeys keys;
    if (options.key_file) {
        ARTEL_ASSIGN(keys, ApiKeys::load(*options.key_file));
    }
    const bool is_open = keys.empty() && !options.has_no_keys_by_choice;
    auto assembly = std::make_unique<Assembly>(options, std::move(dependencies), std::move(keys));
    ARTEL_TRY(assembly->listen(options));
    if (is_open && !assembly->server().is_loopback())
        return invalid_argument(
            "listening on {} lets others use the model; give --api-key-file FILE, or --no-api-key "
            "if that is wanted",
            assembly->server().address());
    return std::unique_ptr<ApiServer>(new ApiServer(std::move(assembly)));
}

void ApiServer::start() {
    assembly_->server().start();
}
std::uint16_t ApiServer::port() const {
    return assembly_->server().port();
}
std::string ApiServer::address() const {
    return assembly_->server().address();
}
void ApiServer::stop(std::chrono::milliseconds patience) {
    assembly_->stop(patience);
}

}  // namespace artel::api
