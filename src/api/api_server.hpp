// SPDX-License-Identifier: Apache-2.0
// ApiServer: the OpenAI API of one served model, assembled: HTTP server, routes, text pool.
// Threads it owns: one io thread, `pool_threads` for JSON, templates and tokenising.
// Which thread calls what:
//   - RequestPort::submit, cancel and health: the io thread; health also pool threads. They must
//     return at once.
//   - RequestSink: the cluster's thread; each call only enqueues. Sinks may be called, and kept,
//     after stop() and after this object is gone; nothing happens then.
//   - tokenizer and render: pool threads, several at once; the tokenizer also the io thread.
//   - create, start, stop: the owner's thread.
// What ApiDependencies refers to must outlive this object. Client side of the order to shut down:
// stop(patience) first (running requests need the cluster to finish), then the cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/http_server.hpp"
#include "api/preparation.hpp"
#include "base/result.hpp"
#include "cluster/request.hpp"

namespace artel::api {

struct ApiOptions {
    std::string listen = "127.0.0.1:8080";          // HOST:PORT; port 0 takes a free one
    std::optional<std::filesystem::path> key_file;  // one API key a line
    bool has_no_keys_by_choice = false;             // --no-api-key
    HttpLimits limits;
    std::size_t pool_threads = 2;
    std::size_t queued_prompts_max = 64;
};

struct ApiDependencies {
    cluster::RequestPort& requests;
    ChatModel model;
    std::int64_t model_created = 0;           // unix seconds, for /v1/models
    std::function<std::int64_t()> unix_time;  // wall clock, seconds
};

class ApiServer {
  public:
    /// Binds and reads the keys; answers nothing before start(). Errors: InvalidArgument (address,
    /// keys; or an address that others can reach without keys), Unavailable (address taken).
    static Result<std::unique_ptr<ApiServer>> create(const ApiOptions& options,
                                                     ApiDependencies dependencies);
    ~ApiServer();

    void start();
    std::uint16_t port() const;
    std::string address() const;  // "127.0.0.1:8080"
    /// Takes no new connections and lets running requests finish for up to `patience`; cancels the
    /// rest. Then no call to RequestPort, tokenizer or render is running or will come.
    void stop(std::chrono::milliseconds patience);

  private:
    class Assembly;
    explicit ApiServer(std::unique_ptr<Assembly> assembly);
    std::unique_ptr<Assembly> assembly_;
};

}  // namespace artel::api
