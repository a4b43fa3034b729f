// SPDX-License-Identifier: Apache-2.0
// The whole API over real sockets; only the cluster is played by the test.
#include "api/api_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "api/http_test_client.hpp"

namespace artel::api {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr text::TokenId kEndOfText = 2, kTurnEnd = 3, kFirstByte = 4;
constexpr std::uint32_t kContext = 200;

/// One token a byte, so a test can write token ids as text.
std::unique_ptr<text::Tokenizer> make_byte_tokenizer() {
    text::Vocabulary vocabulary;
    vocabulary.model = "llama";
    vocabulary.texts = {"<unk>", "<s>", "</s>", "<|im_end|>"};
    vocabulary.types = {text::TokenType::Unknown, text::TokenType::Control,
                        text::TokenType::Control, text::TokenType::Control};
    for (int byte = 0; byte < 256; ++byte) {
        vocabulary.texts.push_back(fmt::format("<0x{:02X}>", byte));
        vocabulary.types.push_back(text::TokenType::Byte);
    }
    vocabulary.scores.assign(vocabulary.texts.size(), 0.0F);
    vocabulary.bos = 1;
    vocabulary.eos = kEndOfText;
    vocabulary.unknown = 0;
    vocabulary.adds_bos = true;
    vocabulary.adds_space_prefix = false;
    auto tokenizer = text::Tokenizer::create(std::move(vocabulary));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return *std::move(tokenizer);
}

/// A cluster that keeps every request until the test answers it.
class FakeCluster : public cluster::RequestPort {
  public:
    struct Taken {
        cluster::RequestId id;
        cluster::Request request;
        std::shared_ptr<cluster::RequestSink> sink;

        void say(std::string_view text) const {
            for (const char c : text) token(kFirstByte + static_cast<unsigned char>(c));
        }
        void token(text::TokenId id_said, bool is_end = false) const {
            cluster::Token token;
            token.id = id_said;
            token.is_end = is_end;
            token.logprob = -0.25F;
            token.top_logprobs.push_back({.token = id_said, .logprob = -0.25F});
            sink->on_token(0, token);
        }
        void finish(cluster::FinishReason reason = cluster::FinishReason::Stop) const {
            sink->on_finished(0, reason);
        }
    };

    cluster::RequestId submit(cluster::Request request,
                              std::shared_ptr<cluster::RequestSink> sink) override {
        std::lock_guard lock(mutex);
        const cluster::RequestId id{++submitted};
        if (refusal)
            sink->on_refused(*refusal);
        else
            taken.push_back({id, std::move(request), std::move(sink)});
        changed.notify_all();
        return id;
    }
    void cancel(cluster::RequestId id) override {
        std::lock_guard lock(mutex);
        cancelled.push_back(id.value);
        changed.notify_all();
    }
    cluster::Health health() const override {
        std::lock_guard lock(mutex);
        return state;
    }
    template <class Condition>
    bool wait(Condition condition) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, milliseconds(5000), condition);
    }
    Taken next() {
        EXPECT_TRUE(wait([this] { return !taken.empty(); }));
        std::lock_guard lock(mutex);
        Taken one = std::move(taken.front());
        taken.pop_front();
        return one;
    }
    std::size_t cancel_count() {
        std::lock_guard lock(mutex);
        return cancelled.size();
    }

    mutable std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t submitted = 0;
    std::deque<Taken> taken;
    std::vector<std::uint64_t> cancelled;
    std::optional<cluster::Refusal> refusal;
    cluster::Health state;
};

Result<text::RenderedPrompt> render_plainly(const text::RenderRequest& request) {
    text::RenderedPrompt prompt;
    for (const json& message : json::parse(request.messages_json)) {
        if (message["content"] == "refuse me")
            return invalid_argument("conversation roles must alternate");
        if (message["content"] == "hang") return deadline_exceeded("no answer in 1 s");
        prompt.segments.push_back({message["content"], text::ParseSpecial::No});
    }
    return prompt;
}

class ApiServerTest : public ::testing::Test {
  protected:
    ApiServerTest() {
        cluster.state.state = cluster::ServiceState::Serving;
        cluster.state.context = kContext;
        options.listen = "127.0.0.1:0";
        options.limits.sweep_interval = milliseconds(10);
    }
    ~ApiServerTest() override {
        if (!key_path.empty()) std::filesystem::remove(key_path);
    }
    Result<std::unique_ptr<ApiServer>> create() {
        return ApiServer::create(options, {.requests = cluster,
                                           .model = {.alias = "org/tiny",
                                                     .tokenizer = tokenizer.get(),
                                                     .render = render_plainly,
                                                     .tool_calls = tool_calls},
                                           .model_created = 1'700'000'000,
                                           .unix_time = [] { return 1'800'000'000; }});
    }
    void start() {
        auto created = create();
        ASSERT_TRUE(created.ok()) << created.status();
        server = *std::move(created);
        server->start();
    }
    TestClient connect() { return TestClient(server->port()); }
    static std::string chat(const std::string& fields, const std::string& content = "hello") {
        return TestClient::post("/v1/chat/completions",
                                R"({"model":"org/tiny","messages":[{"role":"user","content":")" +
                                    content + "\"}]" + (fields.empty() ? "" : "," + fields) + "}");
    }
    static std::string completion(const std::string& fields) {
        return TestClient::post("/v1/completions", R"({"model":"org/tiny",)" + fields + "}");
    }
    TestResponse get(const std::string& path, const std::string& headers = "") {
        return connect().exchange(TestClient::get(path, headers));
    }
    static json error_of(const TestResponse& response) {
        return json::parse(response.body).at("error");
    }
    void set_keys(const std::string& text) {
        key_path =
            std::filesystem::temp_directory_path() / fmt::format("artel-api-keys-{}", ::getpid());
        std::ofstream(key_path) << text;
        options.key_file = key_path;
    }

    text::ToolCallFormat tool_calls = text::ToolCallFormat::None;
    FakeCluster cluster;
    std::unique_ptr<text::Tokenizer> tokenizer = make_byte_tokenizer();
    ApiOptions options;
    std::filesystem::path key_path;
    std::unique_ptr<ApiServer> server;
};

/// The events of a stream, checked for what every stream must keep (C27).
struct Stream {
    std::vector<json> chunks;
    std::string text, reason;
    std::optional<json> usage, error;
    bool has_done = false;

    explicit Stream(const TestResponse& response) {
        EXPECT_EQ(response.status, 200);
        EXPECT_FALSE(response.is_cut);
        EXPECT_TRUE(response.has_header("Content-Type: text/event-stream"));
        read(response.body);
    }
    void read(std::string_view rest) {
        while (!rest.empty()) {
            const std::size_t end = rest.find("\n\n");
            ASSERT_NE(end, std::string_view::npos);
            ASSERT_TRUE(rest.starts_with("data: "));
            add(rest.substr(6, end - 6));
            rest.remove_prefix(end + 2);
        }
    }
    void add(std::string_view data) {
        EXPECT_FALSE(has_done || error) << "something follows the end";
        if (data == "[DONE]") {
            has_done = true;
            return;
        }
        const json event = json::parse(data);
        if (event.contains("error")) {
            error = event["error"];
            return;
        }
        EXPECT_EQ(event.at("object"), "chat.completion.chunk");
        EXPECT_FALSE(usage) << "usage must be last";
        if (event.at("choices").empty()) {
            usage = event.at("usage");
            return;
        }
        const json& choice = event.at("choices").at(0);
        EXPECT_TRUE(reason.empty()) << "a choice follows its finish_reason";
        if (chunks.empty()) {
            EXPECT_EQ(choice.at("delta").at("role"), "assistant");
        }
        text += choice.at("delta").value("content", "");
        if (!choice.at("finish_reason").is_null()) reason = choice["finish_reason"];
        chunks.push_back(event);
    }
};

TEST_F(ApiServerTest, HealthAndModels) {
    start();
    EXPECT_EQ(get("/health").body, R"({"status":"ok","model":"org/tiny","workers":0})");
    const json list = json::parse(get("/v1/models").body);
    EXPECT_EQ(list["data"][0]["id"], "org/tiny");
    EXPECT_EQ(list["data"][0]["context_length"], kContext);
    EXPECT_EQ(json::parse(get("/v1/models/org/tiny").body), list["data"][0]);
    EXPECT_EQ(json::parse(get("/v1/models/org%2Ftiny").body), list["data"][0]);
    EXPECT_EQ(error_of(get("/v1/models/other"))["code"], "model_not_found");

    {
        std::lock_guard lock(cluster.mutex);
        cluster.state.state = cluster::ServiceState::Loading;
        cluster.state.message = "waiting for worker b (layers 10-19)";
        cluster.state.missing_layers = {{.first = 10, .count = 10}, {.first = 0, .count = 4}};
    }
    const auto loading = get("/health");
    EXPECT_EQ(loading.status, 503);
    EXPECT_TRUE(loading.has_header("Retry-After: "));
    EXPECT_EQ(json::parse(loading.body)["status"], "loading");
    EXPECT_EQ(json::parse(loading.body)["missing_layers"],
              json::parse(R"([{"first":10,"count":10},{"first":0,"count":4}])"));
    EXPECT_THAT(loading.body, testing::HasSubstr("worker b"));
    EXPECT_EQ(get("/v1/models").status, 503);
}

TEST_F(ApiServerTest, WrongPathsAndMethodsAnswerInJson) {
    start();
    EXPECT_EQ(error_of(get("/v1/engines"))["code"], "not_found");
    EXPECT_EQ(get("/v1/modelsx").status, 404);
    const auto wrong = get("/v1/chat/completions");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_TRUE(wrong.has_header("Allow: POST, OPTIONS"));
    EXPECT_EQ(connect().exchange(TestClient::post("/health", "{}")).status, 405);
    EXPECT_EQ(connect().exchange("{:\r\n\r\n").status, 400);
    EXPECT_EQ(error_of(connect().exchange("{:\r\n\r\n"))["type"], "invalid_request_error");
    EXPECT_EQ(connect().exchange("OPTIONS /v1/chat/completions HTTP/1.1\r\n\r\n").status, 204);
}

TEST_F(ApiServerTest, WholeAnswer) {
    start();
    TestClient client = connect();
    client.send(chat(R"("max_tokens":5,"temperature":0,"seed":9,"logit_bias":{"7":1})"));
    const auto taken = cluster.next();
    EXPECT_EQ(taken.request.prompt.size(), 6U);  // BOS and one a byte
    EXPECT_EQ(taken.request.max_tokens, 5U);
    EXPECT_EQ(taken.request.sampling.seed, 9U);
    EXPECT_EQ(taken.request.sampling.temperature, 0.0F);
    EXPECT_EQ(taken.request.sampling.logit_bias.at(0).token, 7U);
    EXPECT_THAT(taken.request.end_tokens, testing::IsSupersetOf({kEndOfText, kTurnEnd}));
    taken.say("Paris");
    taken.token(kEndOfText, /*is_end=*/true);
    taken.finish();
    const auto response = client.read_response();
    EXPECT_EQ(response.status, 200);
    EXPECT_TRUE(response.has_header("X-Request-Id: req_"));
    const json body = json::parse(response.body);
    EXPECT_THAT(body["id"].get<std::string>(), testing::MatchesRegex("chatcmpl-[0-9a-f]{24}"));
    EXPECT_EQ(body["object"], "chat.completion");
    EXPECT_EQ(body["created"], 1'800'000'000);
    EXPECT_EQ(body["choices"].size(), 1U);
    EXPECT_EQ(body["choices"][0]["message"]["content"], "Paris");
    EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(body["usage"],
              json::parse(R"({"prompt_tokens":6,"completion_tokens":5,"total_tokens":11})"));
}

TEST_F(ApiServerTest, StreamsAreStrict) {
    start();
    for (const bool wants_usage : {false, true}) {
        TestClient client = connect();
        client.send(chat(R"("stream":true,"stream_options":{"include_usage":)" +
                         std::string(wants_usage ? "true}" : "false}")));
        const auto taken = cluster.next();
        taken.say("caf\xC3\xA9");
        taken.finish(cluster::FinishReason::Length);
        const Stream stream(client.read_response());
        EXPECT_EQ(stream.text, "café");
        EXPECT_EQ(stream.reason, "length");
        EXPECT_TRUE(stream.has_done);
        EXPECT_EQ(stream.usage.has_value(), wants_usage);
        EXPECT_EQ(stream.chunks.at(1).contains("usage"), wants_usage);
        if (wants_usage) {
            EXPECT_EQ((*stream.usage)["completion_tokens"], 5);
        }
    }
}

TEST_F(ApiServerTest, SeveralAnswersAreRequestsOfTheirOwn) {
    start();
    TestClient client = connect();
    client.send(chat(R"("n":3,"seed":5,"stop":"#")"));
    const auto first = cluster.next(), second = cluster.next(), third = cluster.next();
    EXPECT_EQ(first.request.sampling.seed, 5U);  // as if it had been asked for alone
    EXPECT_NE(second.request.sampling.seed, 5U);
    EXPECT_NE(second.request.sampling.seed, third.request.sampling.seed);
    third.say("c");
    third.finish(cluster::FinishReason::Length);
    second.say("b#");  // frees its place, and only its own
    EXPECT_TRUE(cluster.wait([&] { return !cluster.cancelled.empty(); }));
    first.say("aa");
    first.finish();
    const json body = json::parse(client.read_response().body);
    ASSERT_EQ(body["choices"].size(), 3U);
    const char* contents[] = {"aa", "b", "c"};
    const char* reasons[] = {"stop", "stop", "length"};
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(body["choices"][i]["index"], i);
        EXPECT_EQ(body["choices"][i]["message"]["content"], contents[i]);
        EXPECT_EQ(body["choices"][i]["finish_reason"], reasons[i]);
    }
    EXPECT_EQ(body["usage"]["prompt_tokens"], 6);
    EXPECT_EQ(body["usage"]["completion_tokens"], 5);
    EXPECT_EQ(cluster.cancelled, std::vector<std::uint64_t>{second.id.value});
}

TEST_F(ApiServerTest, OneRefusedAnswerRefusesAll) {
    start();
    TestClient client = connect();
    client.send(chat(R"("n":2,"stream":true)"));
    const auto first = cluster.next(), second = cluster.next();
    second.sink->on_refused(cluster::QueueFull{4, milliseconds(10)});
    EXPECT_EQ(client.read_response().status, 429);
    EXPECT_TRUE(cluster.wait([&] { return cluster.cancelled.size() == 2; }));
    first.say("nobody hears this");
}

TEST_F(ApiServerTest, StreamsOfSeveralAnswersEndEachOnce) {
    start();
    TestClient client = connect();
    client.send(chat(R"("n":2,"stream":true)"));
    const auto first = cluster.next(), second = cluster.next();
    second.say("b");
    second.finish();
    first.say("a");
    first.finish(cluster::FinishReason::Length);
    const auto response = client.read_response();
    EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
    std::array<std::string, 2> texts, reasons;
    std::array<int, 2> roles{};
    std::string_view rest = response.body;
    while (rest.size() > 14) {
        const json choice = json::parse(rest.substr(6, rest.find("\n\n") - 6)).at("choices").at(0);
        rest.remove_prefix(rest.find("\n\n") + 2);
        const std::size_t index = choice.at("index");
        EXPECT_TRUE(reasons.at(index).empty());
        roles.at(index) += choice["delta"].contains("role") ? 1 : 0;
        texts.at(index) += choice["delta"].value("content", "");
        if (!choice["finish_reason"].is_null()) reasons.at(index) = choice["finish_reason"];
    }
    EXPECT_EQ(texts, (std::array<std::string, 2>{"a", "b"}));
    EXPECT_EQ(reasons, (std::array<std::string, 2>{"length", "stop"}));
    EXPECT_EQ(roles, (std::array<int, 2>{1, 1}));
}

TEST_F(ApiServerTest, TextCompletionsOfSeveralPrompts) {
    start();
    TestClient client = connect();
    client.send(completion(R"("prompt":["ab","c"],"echo":true,"max_tokens":4)"));
    const auto first = cluster.next(), second = cluster.next();
    EXPECT_EQ(first.request.prompt.size(), 3U);  // BOS and one a byte
    EXPECT_EQ(first.request.max_tokens, 4U);
    second.say("d");
    second.finish();
    first.say("x");
    first.finish(cluster::FinishReason::Length);
    const json body = json::parse(client.read_response().body);
    EXPECT_EQ(body["object"], "text_completion");
    EXPECT_THAT(body["id"].get<std::string>(), testing::StartsWith("cmpl-"));
    EXPECT_EQ(body["choices"][0]["text"], "abx");
    EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(body["choices"][1]["text"], "cd");
    EXPECT_EQ(body["choices"][1]["index"], 1);
    EXPECT_EQ(body["usage"]["prompt_tokens"], 5);
    EXPECT_EQ(body["usage"]["completion_tokens"], 2);
}

TEST_F(ApiServerTest, TextCompletionsTakeTokenIdsAndStream) {
    start();
    TestClient client = connect();
    client.send(completion(
        R"("prompt":[7,8],"stream":true,"logprobs":1,"stream_options":{"include_usage":true})"));
    const auto taken = cluster.next();
    EXPECT_EQ(taken.request.prompt, (std::vector<text::TokenId>{7, 8}));
    taken.say("\xC3\xA9z");
    taken.finish();
    const auto response = client.read_response();
    std::string text;
    json last;
    std::vector<std::size_t> offsets;
    for (std::string_view rest = response.body; rest.size() > 14;) {
        const json event = json::parse(rest.substr(6, rest.find("\n\n") - 6));
        rest.remove_prefix(rest.find("\n\n") + 2);
        EXPECT_EQ(event["object"], "text_completion");
        last = event;
        if (event["choices"].empty()) continue;
        text += event["choices"][0]["text"];
        if (const json& logprobs = event["choices"][0]["logprobs"]; !logprobs.is_null()) {
            for (const json& offset : logprobs["text_offset"]) offsets.push_back(offset);
            EXPECT_EQ(logprobs["tokens"].size(), logprobs["token_logprobs"].size());
            EXPECT_EQ(logprobs["tokens"].size(), logprobs["top_logprobs"].size());
        }
    }
    EXPECT_EQ(text, "éz");
    EXPECT_EQ(offsets, (std::vector<std::size_t>{0, 0, 1}));  // two tokens are one character
    EXPECT_EQ(last["usage"]["completion_tokens"], 3);
    EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
    EXPECT_EQ(error_of(connect().exchange(completion(R"("prompt":[99999])")))["param"], "prompt");
}

TEST_F(ApiServerTest, ToolCallsOfTheAnswerBecomeFields) {
    tool_calls = text::ToolCallFormat::Tagged;
    start();
    const std::string tools =
        R"("tools":[{"type":"function","function":{"name":"f"}}],"parallel_tool_calls":)";
    const std::string call = R"(<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>)";
    for (const bool is_stream : {false, true}) {
        TestClient client = connect();
        client.send(chat(tools + "true,\"stream\":" + (is_stream ? "true" : "false")));
        const auto taken = cluster.next();
        taken.say(call + "\n" + call);
        taken.finish();
        const auto response = client.read_response();
        json calls = json::array();
        if (is_stream) {
            const Stream stream(response);
            EXPECT_EQ(stream.reason, "tool_calls");
            EXPECT_EQ(stream.text, "");
            for (const json& chunk : stream.chunks)
                for (const json& delta :
                     chunk["choices"][0]["delta"].value("tool_calls", json::array())) {
                    EXPECT_EQ(delta["index"], calls.size());
                    calls.push_back(delta);
                }
        } else {
            const json choice = json::parse(response.body)["choices"][0];
            EXPECT_EQ(choice["finish_reason"], "tool_calls");
            EXPECT_TRUE(choice["message"]["content"].is_null());
            calls = choice["message"]["tool_calls"];
        }
        ASSERT_EQ(calls.size(), 2U);
        EXPECT_EQ(calls[0]["type"], "function");
        EXPECT_EQ(calls[0]["function"]["name"], "f");
        EXPECT_EQ(calls[1]["function"]["arguments"], R"({"a":1})");
        EXPECT_NE(calls[0]["id"], calls[1]["id"]);
        EXPECT_NE(calls[0]["id"], "");
    }
    TestClient client = connect();  // one call only: the rest is not even computed
    client.send(chat(tools + "false"));
    const auto taken = cluster.next();
    const std::size_t cancelled = cluster.cancel_count();
    taken.say(call);
    EXPECT_TRUE(cluster.wait([&] { return cluster.cancelled.size() == cancelled + 1; }));
    const json choice = json::parse(client.read_response().body)["choices"][0];
    EXPECT_EQ(choice["message"]["tool_calls"].size(), 1U);
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
}

TEST_F(ApiServerTest, ToolsNeedATemplateThatTakesThem) {
    start();
    const auto refused =
        connect().exchange(chat(R"("tools":[{"type":"function","function":{"name":"f"}}])"));
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(error_of(refused)["param"], "tools");
    EXPECT_EQ(error_of(refused)["code"], "unsupported_parameter");
}

TEST_F(ApiServerTest, TokenizeAndDetokenize) {
    start();
    const auto post = [this](const std::string& path, const std::string& body) {
        return connect().exchange(TestClient::post(path, body));
    };
    EXPECT_EQ(post("/tokenize", R"({"content":"ab"})").body, R"({"tokens":[101,102]})");
    EXPECT_EQ(post("/tokenize", R"({"content":"a","add_special":true,"with_pieces":true})").body,
              R"({"tokens":[{"id":1,"piece":"<s>"},{"id":101,"piece":"a"}]})");
    EXPECT_EQ(post("/tokenize", R"({"content":"é","with_pieces":true})").body,
              R"({"tokens":[{"id":199,"piece":[195]},{"id":173,"piece":[169]}]})");
    EXPECT_EQ(post("/tokenize", R"({"content":"</s>"})").body, R"({"tokens":[2]})");
    EXPECT_EQ(
        json::parse(post("/tokenize", R"({"content":"</s>","parse_special":false})").body)["tokens"]
            .size(),
        4U);
    EXPECT_EQ(post("/detokenize", R"({"tokens":[101,102]})").body, R"({"content":"ab"})");
    for (const char* body : {"", "[]", "{}", R"({"content":5})", R"({"tokens":[99999]})",
                             R"({"tokens":[-1]})", R"({"tokens":["a"]})", R"({"tokens":5})"}) {
        EXPECT_EQ(post("/tokenize", body).status, 400) << body;
        EXPECT_EQ(post("/detokenize", body).status, 400) << body;
    }
}

TEST_F(ApiServerTest, EmbeddingsSayWhyNot) {
    start();
    const auto ask = [this](const std::string& body) {
        return connect().exchange(TestClient::post("/v1/embeddings", body));
    };
    const auto refused = ask(R"({"model":"org/tiny","input":"x"})");
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(error_of(refused)["code"], "unsupported_model");
    EXPECT_EQ(ask(R"({"model":"other","input":"x"})").status, 404);
    EXPECT_EQ(ask("{").status, 400);
}

TEST_F(ApiServerTest, MetricsAndClusterTellTheState) {
    cluster::WorkerHealth worker;
    worker.name = "b";
    worker.layers = {.first = 3, .count = 4};
    worker.is_connected = worker.is_ready = true;
    cluster.state.workers.push_back(worker);
    start();
    TestClient client = connect();
    client.send(chat(""));
    const auto taken = cluster.next();
    taken.say("abc");
    taken.finish();
    EXPECT_EQ(client.read_response().status, 200);
    EXPECT_EQ(connect().exchange(chat(R"("top_p":7)")).status, 400);
    const auto metrics = get("/metrics");
    EXPECT_TRUE(metrics.has_header("Content-Type: text/plain; version=0.0.4"));
    for (const char* line :
         {"artel_up 1\n", "artel_generated_tokens_total 3\n", "artel_prompt_tokens_total 6\n",
          "artel_completions_total{outcome=\"ok\"} 1\n",
          "artel_completions_total{outcome=\"invalid_request_error\"} 1\n",
          "artel_time_to_first_token_seconds_count 1\n",
          "artel_time_between_tokens_seconds_count 2\n", "artel_worker_layers{worker=\"b\"} 4\n"})
        EXPECT_THAT(metrics.body, testing::HasSubstr(line));
    const json shown = json::parse(get("/v1/cluster").body);
    EXPECT_EQ(shown["model"], "org/tiny");
    EXPECT_EQ(shown["state"], "ok");
    EXPECT_EQ(shown["workers"][0]["name"], "b");
    EXPECT_EQ(shown["workers"][0]["state"], "ready");
    EXPECT_EQ(shown["workers"][0]["layers"]["first"], 3);
}

TEST_F(ApiServerTest, BytesThatAreNoTextBecomeReplacementCharacters) {
    start();
    TestClient client = connect();
    client.send(chat(R"("stream":true)"));
    const auto taken = cluster.next();
    taken.say(
        "a\xE2\x80"
        "A\xF0\x9F");
    taken.finish();
    EXPECT_EQ(Stream(client.read_response()).text,
              "a\xEF\xBF\xBD"
              "A\xEF\xBF\xBD");
}

// Across chunk borders, streamed or not; the request is cancelled and the stop is not shown.
TEST_F(ApiServerTest, StopStringsEndTheAnswer) {
    start();
    for (const bool is_stream : {false, true}) {
        const std::size_t cancelled = cluster.cancel_count();
        TestClient client = connect();
        client.send(
            chat(R"("stop":["END","zzz"],"stream":)" + std::string(is_stream ? "true" : "false")));
        const auto taken = cluster.next();
        taken.say("one EN two E");
        taken.say("ND three");
        const auto response = client.read_response();
        std::string text;
        if (is_stream)
            text = Stream(response).text;
        else
            text = json::parse(response.body)["choices"][0]["message"]["content"];
        EXPECT_EQ(text, "one EN two ");
        EXPECT_TRUE(cluster.wait([&] { return cluster.cancelled.size() == cancelled + 1; }));
        EXPECT_EQ(cluster.cancelled.back(), taken.id.value);
    }
}

TEST_F(ApiServerTest, AStopMayNameAControlTokenAndHeldTextComesAtTheEnd) {
    start();
    TestClient client = connect();
    client.send(chat(R"("stop":["<|im_end|>","never"],"ignore_eos":true)"));
    const auto taken = cluster.next();
    EXPECT_TRUE(taken.request.end_tokens.empty());
    taken.say("text nev");
    taken.token(kTurnEnd);
    const json body = json::parse(client.read_response().body);
    EXPECT_EQ(body["choices"][0]["message"]["content"], "text nev");
    EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
}

TEST_F(ApiServerTest, LogprobsFollowTheTokens) {
    start();
    TestClient client = connect();
    client.send(chat(R"("logprobs":true,"top_logprobs":1,"stream":true,"stop":"##")"));
    const auto taken = cluster.next();
    EXPECT_TRUE(taken.request.sampling.wants_logprob);
    EXPECT_EQ(taken.request.sampling.top_logprobs, 1U);
    taken.say("a\xC3\xA9#");
    taken.finish();
    const Stream stream(client.read_response());
    EXPECT_EQ(stream.text, "aé#");
    std::vector<int> bytes;
    for (const json& chunk : stream.chunks)
        if (const json& logprobs = chunk["choices"][0]["logprobs"]; !logprobs.is_null())
            for (const json& entry : logprobs["content"]) {
                EXPECT_EQ(entry["logprob"], -0.25);
                EXPECT_EQ(entry["top_logprobs"].size(), 1U);
                for (const json& byte : entry["bytes"]) bytes.push_back(byte);
            }
    EXPECT_EQ(bytes, (std::vector<int>{'a', 0xC3, 0xA9, '#'}));
}

TEST_F(ApiServerTest, BadRequestsAre400AndLeaveItServing) {
    start();
    const auto status_of = [this](const std::string& body) {
        return connect().exchange(TestClient::post("/v1/chat/completions", body)).status;
    };
    for (const std::string& body :
         {std::string(), std::string("{:"), std::string(3000, '['), std::string("\xFF{}"),
          std::string(100, '\0'), std::string(1'000'000, '{')})
        EXPECT_EQ(status_of(body), 400);
    EXPECT_EQ(connect().exchange(chat(R"("seed":1e999)")).status, 400);
    const auto unknown = connect().exchange(TestClient::post(
        "/v1/chat/completions", R"({"model":"gpt-9","messages":[{"role":"user","content":"x"}]})"));
    EXPECT_EQ(unknown.status, 404);
    EXPECT_EQ(error_of(unknown)["code"], "model_not_found");
    EXPECT_EQ(error_of(connect().exchange(chat(R"("logit_bias":{"99999":1})")))["param"],
              "logit_bias");
    const auto refused = connect().exchange(chat("", "refuse me"));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(error_of(refused)["message"].get<std::string>(),
                testing::HasSubstr("roles must alternate"));
    EXPECT_EQ(connect().exchange(chat("", "hang")).status, 504) << "not the client's fault";
    EXPECT_EQ(cluster.submitted, 0U);
    EXPECT_EQ(get("/health").status, 200);
}

TEST_F(ApiServerTest, PromptsLongerThanTheContextAreRefusedWithBothNumbers) {
    start();
    const auto refused = connect().exchange(chat("", std::string(kContext - 1, 'x')));
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(error_of(refused)["code"], "context_length_exceeded");
    const std::string message = error_of(refused)["message"];
    EXPECT_THAT(message, testing::HasSubstr(fmt::format("{} tokens.", kContext)));
    EXPECT_THAT(message, testing::HasSubstr(fmt::format("in {} tokens", kContext)));
    EXPECT_EQ(cluster.submitted, 0U);

    const auto huge = connect().exchange(chat("", std::string(1'000'000, 'x')));
    EXPECT_EQ(error_of(huge)["code"], "context_length_exceeded");
    EXPECT_THAT(error_of(huge)["message"].get<std::string>(), testing::HasSubstr("in at least "));

    TestClient longest = connect();
    longest.send(chat(R"("max_tokens":4000)", std::string(kContext - 2, 'x')));
    const auto taken = cluster.next();
    EXPECT_EQ(taken.request.max_tokens, 1U);
    taken.finish(cluster::FinishReason::Length);
    EXPECT_EQ(longest.read_response().status, 200);
}

TEST_F(ApiServerTest, RefusalsOfTheCluster) {
    start();
    const auto refused_with = [this](cluster::Refusal refusal) {
        {
            std::lock_guard lock(cluster.mutex);
            cluster.refusal = std::move(refusal);
        }
        return connect().exchange(chat(R"("stream":true)"));
    };
    const auto full = refused_with(cluster::QueueFull{9, std::chrono::milliseconds(2500)});
    EXPECT_EQ(full.status, 429);
    EXPECT_TRUE(full.has_header("Retry-After: 3\r\n"));
    EXPECT_EQ(error_of(full)["code"], "queue_full");
    const auto early = refused_with(cluster::NotReady{"worker b is loading", {}});
    EXPECT_EQ(early.status, 503);
    EXPECT_TRUE(early.has_header("Retry-After: "));
    EXPECT_THAT(early.body, testing::HasSubstr("worker b is loading"));
    const auto tall = refused_with(cluster::PromptTooLong{300, 0, 128});
    EXPECT_EQ(error_of(tall)["code"], "context_length_exceeded");
    EXPECT_EQ(error_of(refused_with(cluster::InvalidRequest{"top_k", "no"}))["param"], "top_k");
}

TEST_F(ApiServerTest, ALostWorkerBeforeAndInsideAStream) {
    start();
    const cluster::RequestFailure lost{cluster::FailureKind::WorkerLost, "worker b is gone", {}};
    TestClient early = connect();
    early.send(chat(R"("stream":true)"));
    cluster.next().sink->on_failed(lost);
    const auto response = early.read_response();
    EXPECT_EQ(response.status, 503);
    EXPECT_TRUE(response.has_header("Retry-After: "));
    EXPECT_EQ(error_of(response)["code"], "worker_lost");

    TestClient late = connect();
    late.send(chat(R"("stream":true)"));
    const auto taken = cluster.next();
    taken.say("half");
    taken.sink->on_failed(lost);
    const Stream stream(late.read_response());
    EXPECT_EQ(stream.text, "half");
    EXPECT_EQ(stream.reason, "");
    EXPECT_FALSE(stream.has_done);
    EXPECT_EQ(*stream.error, json::parse(R"({"message":"worker b is gone","type":"server_error",
                                             "code":"worker_lost"})"));
    EXPECT_EQ(get("/health").status, 200);
}

// Also while no token flows, and only the request of the client that left.
TEST_F(ApiServerTest, AClientThatLeavesCancelsItsRequestOnly) {
    start();
    TestClient stays = connect();
    stays.send(chat(""));
    const auto kept = cluster.next();
    TestClient leaves = connect();
    leaves.send(chat(R"("stream":true)"));
    const auto dropped = cluster.next();
    const auto start_time = steady_clock::now();
    leaves.close();
    EXPECT_TRUE(cluster.wait([this] { return !cluster.cancelled.empty(); }));
    EXPECT_LT(steady_clock::now() - start_time, milliseconds(500));
    dropped.say("nobody hears this");
    dropped.finish(cluster::FinishReason::Cancelled);
    kept.say("here");
    kept.finish();
    EXPECT_THAT(stays.read_response().body, testing::HasSubstr("here"));
    EXPECT_EQ(cluster.cancelled, std::vector<std::uint64_t>{dropped.id.value});
}

TEST_F(ApiServerTest, ASlowReaderIsDroppedAndCancelled) {
    options.limits.stream_bytes_max = 64 * 1024;
    options.limits.send_buffer_bytes = 16 * 1024;
    start();
    TestClient client(server->port(), /*receive_buffer=*/4096);
    client.send(chat(R"("stream":true)"));
    const auto taken = cluster.next();
    for (int i = 0; i < 200 && cluster.cancel_count() == 0; ++i)
        taken.say("0123456789012345678901234567890123456789");
    EXPECT_TRUE(cluster.wait([this] { return !cluster.cancelled.empty(); }));
    EXPECT_EQ(get("/health").status, 200);
}

TEST_F(ApiServerTest, KeysAreWantedOnEveryPathButHealth) {
    set_keys("right-key\n");
    start();
    EXPECT_EQ(get("/health").status, 200);
    for (const std::string& request :
         {TestClient::get("/v1/models"), TestClient::get("/v1/models/org/tiny"),
          TestClient::get("/v1/models?api_key=right-key"), chat(""), TestClient::get("/nothing"),
          TestClient::get("/v1/models", "Authorization: Bearer wrong\r\n")}) {
        const auto response = connect().exchange(request);
        EXPECT_EQ(response.status, 401);
        EXPECT_EQ(error_of(response)["code"], "invalid_api_key");
    }
    EXPECT_EQ(get("/v1/models", "Authorization: Bearer right-key\r\n").status, 200);
}

TEST_F(ApiServerTest, OtherOriginsGetNoPermission) {
    start();
    const auto read = get("/v1/models", "Origin: https://evil.example\r\n");
    EXPECT_FALSE(read.has_header("Access-Control"));
    EXPECT_EQ(connect()
                  .exchange("POST /v1/chat/completions HTTP/1.1\r\nOrigin: https://evil.example\r\n"
                            "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}")
                  .status,
              415);
}

TEST_F(ApiServerTest, AddressesThatOthersReachNeedKeys) {
    options.listen = "0.0.0.0:0";
    EXPECT_EQ(create().status().code(), ErrorCode::kInvalidArgument);
    options.has_no_keys_by_choice = true;
    EXPECT_TRUE(create().ok());
    set_keys("k");
    EXPECT_EQ(create().status().code(), ErrorCode::kInvalidArgument);
    options.has_no_keys_by_choice = false;
    EXPECT_TRUE(create().ok());
}

TEST_F(ApiServerTest, StopLetsStreamsFinishAndCancelsTheRest) {
    start();
    TestClient finishes = connect(), hangs = connect();
    finishes.send(chat(R"("stream":true)"));
    const auto first = cluster.next();
    hangs.send(chat(""));
    const auto second = cluster.next();
    std::thread stopper([this] { server->stop(milliseconds(300)); });
    first.say("done");
    first.finish();
    EXPECT_TRUE(Stream(finishes.read_response()).has_done);
    stopper.join();
    EXPECT_EQ(cluster.cancelled, std::vector<std::uint64_t>{second.id.value});
    EXPECT_FALSE(connect().is_connected());
    server.reset();
    second.say("too late");  // a sink that outlives the server does nothing
    second.finish();
}

}  // namespace
}  // namespace artel::api
