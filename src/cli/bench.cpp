// SPDX-License-Identifier: Apache-2.0
// artel bench -m MODEL.gguf [--prompt 512] [--generate 128] [--contexts 0,4096] [--concurrency
// 1,2,4] [--runs 5] [--json]: how fast a cluster, or a worker inside this process, reads and
// writes. For each context C and concurrency R: R requests start together with C+P random tokens
// each, then generate G each, whatever the tokens are.
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/random.hpp"
#include "cli/bench_trace.hpp"
#include "cli/cluster_client.hpp"
#include "cli/commands.hpp"
#include "cli/local_model.hpp"
#include "cli/model_options.hpp"
#include "cli/model_text.hpp"
#include "models/description.hpp"
#include "quant/type_names.hpp"
#include "runtime/probe.hpp"

namespace artel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr Duration kRunPatience = std::chrono::hours(2);
constexpr std::uint32_t kTokensMax = 1U << 24;

struct BenchCommand {
    ModelOptions model;
    std::uint32_t prompt = 512;
    std::uint32_t generate = 128;
    std::vector<std::uint32_t> contexts = {0, 4096};
    std::vector<std::uint32_t> concurrency = {1, 2, 4};
    std::uint32_t runs = 5;
    bool wants_json = false;
    std::string log_level;
};

/// What one run measured, or the medians of several.
struct Rates {
    double prefill = 0;    // tokens a second, all requests together
    double decode = 0;     // the same
    double gigabytes = 0;  // of weights, a second, while decoding
};
struct Entry {
    std::uint32_t context = 0;
    std::uint32_t requests = 0;
    Rates rates;
};

/// Reads a model's vocabulary and the bytes of weights that one token needs.
struct BenchModel {
    std::uint32_t vocabulary = 0;
    std::uint64_t active_bytes = 0;
    std::uint32_t context_max = 0;
};

Result<BenchModel> read_model(const ModelOptions& options) {
    ARTEL_ASSIGN(const auto index, gguf::GgufIndex::open(options.model, quant::block_size_of));
    ARTEL_ASSIGN(const auto description, models::describe(index));
    BenchModel model{.vocabulary = description.shape.vocabulary_size,
                     .active_bytes = description.input.row_cost.weight_bytes +
                                     description.output.row_cost.weight_bytes,
                     .context_max = description.shape.context_length};
    for (const models::PartDescription& layer : description.layers)
        model.active_bytes += layer.row_cost.weight_bytes;
    return model;
}

class Bench {
  public:
    Bench(const BenchCommand& command, const BenchModel& model, cluster::RequestPort& port)
        : command_(command), model_(model), port_(port) {}

    Result<std::vector<Entry>> run();

  private:
    Result<Rates> run_once(std::uint32_t context, std::uint32_t requests);
    Result<Rates> medians(std::uint32_t context, std::uint32_t requests);
    cluster::Request random_request(std::uint32_t context);
    void show_progress(std::uint32_t context, std::uint32_t requests, std::uint32_t run) const;

    const BenchCommand& command_;
    const BenchModel& model_;
    cluster::RequestPort& port_;
    Random random_{1};
};

cluster::Request Bench::random_request(std::uint32_t context) {
    cluster::Request request;
    for (std::uint32_t i = 0; i < context + command_.prompt; ++i)
        request.prompt.push_back(static_cast<cluster::TokenId>(random_.below(model_.vocabulary)));
    request.max_tokens = command_.generate;
    request.sampling.temperature = 0;
    return request;
}

Result<Rates> Bench::run_once(std::uint32_t context, std::uint32_t requests) {
    std::vector<cluster::Request> prepared;
    for (std::uint32_t i = 0; i < requests; ++i) prepared.push_back(random_request(context));
    const auto trace = std::make_shared<BenchTrace>(requests);
    const auto begin = BenchTrace::now();
    std::vector<cluster::RequestId> ids;
    for (std::uint32_t i = 0; i < requests; ++i)
        ids.push_back(port_.submit(std::move(prepared[i]), trace->sink(i)));
    if (const Error error = trace->wait(kRunPatience); !error.ok()) {
        for (const cluster::RequestId id : ids) port_.cancel(id);
        return error;
    }
    std::uint32_t stages = 0;
    for (const cluster::WorkerHealth& worker : port_.health().workers)
        if (worker.layers.count > 0 || worker.has_input || worker.has_output) ++stages;
    const BenchSummary summary = trace->summary(begin, std::max(stages, 1U));
    // The tokens of the context are read like those of the prompt, and in the same time.
    const double read = static_cast<double>(requests) * (context + command_.prompt);
    Rates rates;
    rates.prefill = read / std::max(summary.prefill_seconds, 1e-9);
    if (summary.decode_seconds > 0) {
        rates.decode = summary.decoded_tokens / summary.decode_seconds;
        rates.gigabytes = summary.decode_steps * static_cast<double>(model_.active_bytes) /
                          summary.decode_seconds / 1e9;
    }
    return rates;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Result<Rates> Bench::medians(std::uint32_t context, std::uint32_t requests) {
    std::vector<double> prefill;
    std::vector<double> decode;
    std::vector<double> gigabytes;
    for (std::uint32_t run = 0; run < command_.runs; ++run) {
        show_progress(context, requests, run);
        ARTEL_ASSIGN(const Rates rates, run_once(context, requests));
        prefill.push_back(rates.prefill);
        decode.push_back(rates.decode);
        gigabytes.push_back(rates.gigabytes);
    }
    return Rates{median(prefill), median(decode), median(gigabytes)};
}

void Bench::show_progress(std::uint32_t context, std::uint32_t requests, std::uint32_t run) const {
    if (::isatty(STDERR_FILENO) == 0) return;
    std::fprintf(stderr, "\rcontext %u, %u requests: run %u of %u   ", context, requests, run + 1,
                 command_.runs);
}

Result<std::vector<Entry>> Bench::run() {
    std::vector<Entry> entries;
    for (const std::uint32_t context : command_.contexts)
        for (const std::uint32_t requests : command_.concurrency) {
            ARTEL_ASSIGN(const Rates rates, medians(context, requests));
            entries.push_back({context, requests, rates});
        }
    if (::isatty(STDERR_FILENO) != 0) std::fputc('\n', stderr);
    return entries;
}

Json to_json(const BenchCommand& command, const std::vector<Entry>& entries, double bandwidth) {
    Json results = Json::array();
    for (const Entry& entry : entries)
        results.push_back({{"context", entry.context},
                           {"prompt", command.prompt},
                           {"generate", command.generate},
                           {"concurrency", entry.requests},
                           {"prefill_tokens_per_second", entry.rates.prefill},
                           {"decode_tokens_per_second", entry.rates.decode},
                           {"gb_per_second", entry.rates.gigabytes},
                           {"bandwidth_share", entry.rates.gigabytes / bandwidth},
                           {"runs", command.runs}});
    return {{"model", std::filesystem::path(command.model.model).filename().string()},
            {"workers", command.model.worker_count()},
            {"threads", command.model.threads_per_worker()},
            {"results", std::move(results)}};
}

std::string to_table(const std::vector<Entry>& entries, double bandwidth) {
    std::string table =
        fmt::format("{:>8} {:>11} {:>14} {:>14} {:>8} {:>10}\n", "context", "concurrency",
                    "prefill tok/s", "decode tok/s", "GB/s", "bandwidth");
    for (const Entry& entry : entries)
        table += fmt::format("{:>8} {:>11} {:>14.1f} {:>14.1f} {:>8.2f} {:>8.1f} %\n",
                             entry.context, entry.requests, entry.rates.prefill, entry.rates.decode,
                             entry.rates.gigabytes, 100 * entry.rates.gigabytes / bandwidth);
    return table;
}

Error bench(const BenchCommand& command) {
    ARTEL_TRY(check_model_options(command.model));
    ARTEL_ASSIGN(const BenchModel model, read_model(command.model));
    const std::uint32_t deepest =
        *std::max_element(command.contexts.begin(), command.contexts.end());
    const std::uint32_t needed = deepest + command.prompt + command.generate;
    const std::uint32_t most = command.model.context != 0
                                   ? std::min(command.model.context, model.context_max)
                                   : model.context_max;
    if (needed > most)
        return invalid_argument(
            "context {} + prompt {} + generate {} need {} tokens, the model's context is {}",
            deepest, command.prompt, command.generate, needed, most);
    const double bandwidth =
        1e-9 * static_cast<double>(runtime::read_bandwidth(command.model.threads_per_worker() *
                                                           command.model.worker_count()));
    const std::uint32_t parallel =
        *std::max_element(command.concurrency.begin(), command.concurrency.end());
    ARTEL_ASSIGN(const auto service,
                 start_cluster(command.model, {.context = needed,
                                               .parallel = parallel,
                                               .chunk = 256,
                                               .log_level = command.log_level}));
    ARTEL_ASSIGN(const auto entries, Bench(command, model, service->requests()).run());
    if (!command.wants_json) return write_output(to_table(entries, bandwidth));
    return write_output(
        to_json(command, entries, bandwidth).dump(2, ' ', false, Json::error_handler_t::replace) +
        "\n");
}

}  // namespace

void add_bench_command(CLI::App& app, Command& run) {
    auto* command = app.add_subcommand("bench", "Measure how fast a model reads and writes");
    const auto options = std::make_shared<BenchCommand>();
    add_model_options(*command, options->model);
    command->add_option("--prompt", options->prompt, "Tokens of each prompt")
        ->check(CLI::Range(1U, kTokensMax))
        ->capture_default_str();
    command->add_option("--generate", options->generate, "Tokens of each answer")
        ->check(CLI::Range(1U, kTokensMax))
        ->capture_default_str();
    command->add_option("--contexts", options->contexts, "Tokens before each prompt")
        ->delimiter(',')
        ->check(CLI::Range(0U, kTokensMax))
        ->capture_default_str();
    command->add_option("--concurrency", options->concurrency, "Requests at the same time")
        ->delimiter(',')
        ->check(CLI::Range(1U, 256U))
        ->capture_default_str();
    command->add_option("--runs", options->runs, "Of each; the median counts")
        ->check(CLI::Range(1U, 1000U))
        ->capture_default_str();
    command->add_flag("--json", options->wants_json, "Print JSON");
    command->callback([&app, &run, options] {
        options->log_level = client_log_level(app);
        run = [options] { return bench(*options); };
    });
}

}  // namespace artel::cli
