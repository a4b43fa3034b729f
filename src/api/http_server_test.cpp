// SPDX-License-Identifier: Apache-2.0
#include "api/http_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "api/http_test_client.hpp"

namespace artel::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Answers /echo and /stream at once; keeps the Responder of everything else for the test.
class TestHandler : public HttpHandler {
  public:
    std::optional<HttpResponse> refuse_early(const HttpRequest& head) override {
        if (head.path == "/secret") return HttpResponse{.status = 401, .headers = {}, .body = "no"};
        return std::nullopt;
    }
    void on_request(HttpRequest request, Responder responder) override {
        if (request.path == "/echo")
            return responder.respond({.headers = {}, .body = request.body + "!"});
        if (request.path == "/drop") return;
        if (request.path == "/stream") {
            responder.start_stream({.content_type = "text/plain", .headers = {}, .body = ""});
            for (const char* piece : {"one ", "", "two ", "three"}) responder.push(piece);
            return responder.finish();
        }
        responder.on_disconnect([this] {
            std::lock_guard lock(mutex);
            ++disconnects;
            changed.notify_all();
        });
        std::lock_guard lock(mutex);
        kept.push_back(responder);
        changed.notify_all();
    }
    HttpResponse error_response(int status, std::string_view message) override {
        return {.status = status, .headers = {}, .body = std::string(message)};
    }
    template <class Condition>
    bool wait(Condition condition, milliseconds limit = milliseconds(5000)) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, limit, condition);
    }
    Responder take_kept() {
        wait([this] { return !kept.empty(); });
        std::lock_guard lock(mutex);
        Responder responder = kept.back();
        kept.pop_back();
        return responder;
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Responder> kept;
    int disconnects = 0;
};

struct TestServer {
    explicit TestServer(HttpLimits limits = {}) {
        limits.sweep_interval = milliseconds(10);
        server = *HttpServer::create({.listen = "127.0.0.1:0", .limits = limits}, handler);
        server->start();
    }
    TestClient connect() { return TestClient(server->port()); }
    bool is_serving() {
        TestClient client(server->port());
        const auto response = client.exchange(TestClient::post("/echo", "alive"));
        return response.status == 200 && response.body == "alive!";
    }
    TestHandler handler;
    std::unique_ptr<HttpServer> server;
};

TEST(HttpServer, KeepsAConnectionForManyRequests) {
    TestServer test;
    TestClient client = test.connect();
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(client.exchange(TestClient::post("/echo", std::to_string(i))).body,
                  std::to_string(i) + "!");
    const auto last = client.exchange(TestClient::post("/echo", "x", "Connection: close\r\n"));
    EXPECT_TRUE(last.has_header("Connection: close"));
    EXPECT_TRUE(client.is_closed_by_server());
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
    TestServer test;
    TestClient client = test.connect();
    client.send(TestClient::post("/echo", "a") + TestClient::get("/stream") + "\r\n" +
                TestClient::post("/echo", "b"));
    EXPECT_EQ(client.read_response().body, "a!");
    EXPECT_EQ(client.read_response().body, "one two three");
    EXPECT_EQ(client.read_response().body, "b!");
}

TEST(HttpServer, OldClientsAndHeadRequests) {
    TestServer test;
    TestClient old = test.connect();
    const auto response = old.exchange("GET /stream HTTP/1.0\r\n\r\n");
    EXPECT_FALSE(response.has_header("chunked"));
    EXPECT_EQ(response.body, "one two three");

    TestClient client = test.connect();
    client.send("HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(client.read_response(/*has_body=*/false).has_header("Content-Length: 1\r\n"));
    EXPECT_EQ(client.exchange(TestClient::post("/echo", "after")).body, "after!");
}

TEST(HttpServer, Says100ContinueBeforeTheBody) {
    TestServer test;
    TestClient client = test.connect();
    client.send("POST /echo HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    ASSERT_TRUE(client.wait_for("100 Continue\r\n\r\n"));
    EXPECT_EQ(client.exchange("hi").body, "hi!");
}

// Refused before its body is read, also when the client insists on sending it.
TEST(HttpServer, RefusesEarlyAndTooLarge) {
    TestServer test;
    TestClient early = test.connect();
    EXPECT_EQ(early.exchange("POST /secret HTTP/1.1\r\nContent-Length: 9\r\n\r\n").status, 401);
    EXPECT_TRUE(early.is_closed_by_server());
    TestClient patient = test.connect();
    EXPECT_EQ(patient.exchange(TestClient::post("/secret", "whole")).status, 401);
    EXPECT_EQ(patient.exchange(TestClient::post("/echo", "on")).body, "on!");

    TestClient large = test.connect();
    const std::string body(20'000'000, '[');
    EXPECT_TRUE(large.send(TestClient::post("/echo", body)));
    EXPECT_EQ(large.read_response().status, 413);
    EXPECT_TRUE(test.is_serving());
}

TEST(HttpServer, BodiesOfAllClientsTogetherHaveALimit) {
    TestServer test({.body_bytes_total_max = 100'000});
    TestClient first = test.connect();
    first.send(TestClient::post("/keep", std::string(80'000, 'x')));
    const Responder kept = test.handler.take_kept();  // the server holds the whole body now
    TestClient second = test.connect();
    EXPECT_EQ(second.exchange(TestClient::post("/echo", std::string(80'000, 'x'))).status, 503);
    kept.respond({.headers = {}, .body = "first"});
    EXPECT_EQ(first.read_response().body, "first");
    TestClient third = test.connect();
    EXPECT_EQ(third.exchange(TestClient::post("/echo", std::string(80'000, 'x'))).status, 200);
}

TEST(HttpServer, EveryPhaseOfARequestHasADeadline) {
    TestServer test({.header_timeout = milliseconds(100),
                     .body_timeout = milliseconds(100),
                     .idle_timeout = milliseconds(100)});
    TestClient silent = test.connect();
    TestClient slow_header = test.connect();
    slow_header.send("GET / HT");
    TestClient slow_body = test.connect();
    slow_body.send("POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf");
    TestClient idle = test.connect();
    EXPECT_EQ(idle.exchange(TestClient::post("/echo", "")).status, 200);
    EXPECT_TRUE(silent.is_closed_by_server());
    EXPECT_EQ(slow_header.read_response().status, 408);
    EXPECT_EQ(slow_body.read_response().status, 408);
    EXPECT_TRUE(idle.is_closed_by_server());
}

TEST(HttpServer, AnswerMayComeFromAnyThread) {
    TestServer test;
    TestClient client = test.connect();
    client.send(TestClient::get("/wait"));
    Responder responder = test.handler.take_kept();
    std::thread([&responder] {
        responder.start_stream({.content_type = "text/plain", .headers = {}, .body = ""});
        for (int i = 0; i < 1000; ++i) EXPECT_TRUE(responder.push("0123456789"));
        responder.finish();
        EXPECT_FALSE(responder.push("too late"));
    }).join();
    EXPECT_EQ(client.read_response().body.size(), 10'000u);
    EXPECT_EQ(test.handler.disconnects, 0);
}

TEST(HttpServer, ADroppedResponderStillGivesTheClientAnEnd) {
    TestServer test;
    TestClient client = test.connect();
    EXPECT_EQ(client.exchange(TestClient::get("/drop")).status, 500);

    TestClient streaming = test.connect();
    streaming.send(TestClient::get("/wait"));
    {
        Responder responder = test.handler.take_kept();
        responder.start_stream({.content_type = "text/plain", .headers = {}, .body = ""});
        responder.push("half");
    }
    EXPECT_TRUE(streaming.read_response().is_cut);
}

// Seen although nothing is sent: a clean close, and a reset.
TEST(HttpServer, NoticesAClientThatGoesAway) {
    TestServer test;
    for (const bool is_reset : {false, true}) {
        test.handler.disconnects = 0;
        TestClient client = test.connect();
        client.send(TestClient::get("/wait"));
        Responder responder = test.handler.take_kept();
        const auto start = steady_clock::now();
        is_reset ? client.reset() : client.close();
        EXPECT_TRUE(test.handler.wait([&test] { return test.handler.disconnects == 1; }));
        EXPECT_LT(steady_clock::now() - start, milliseconds(500));
        EXPECT_FALSE(responder.push("anyone?"));
    }
}

TEST(HttpServer, DropsAReaderThatIsTooSlow) {
    TestServer test({.stream_bytes_max = 64 * 1024, .send_buffer_bytes = 16 * 1024});
    TestClient client(test.server->port(), /*receive_buffer=*/4096);
    client.send(TestClient::get("/wait"));
    Responder responder = test.handler.take_kept();
    responder.start_stream({.content_type = "text/plain", .headers = {}, .body = ""});
    const std::string piece(1024, 'x');
    int pushed = 0;
    while (pushed < 10'000 && responder.push(piece)) {
        ++pushed;
        std::this_thread::yield();
    }
    EXPECT_LT(pushed, 10'000);
    EXPECT_TRUE(test.handler.wait([&test] { return test.handler.disconnects == 1; }));
}

TEST(HttpServer, DropsAReaderThatStops) {
    TestServer test({.send_buffer_bytes = 16 * 1024, .write_timeout = milliseconds(100)});
    TestClient client(test.server->port(), /*receive_buffer=*/4096);
    client.send(TestClient::get("/wait"));
    Responder responder = test.handler.take_kept();
    responder.start_stream({.content_type = "text/plain", .headers = {}, .body = ""});
    responder.push(std::string(500'000, 'x'));
    EXPECT_TRUE(test.handler.wait([&test] { return test.handler.disconnects == 1; }));
}

TEST(HttpServer, GarbageConnectionsLeaveItServing) {
    TestServer test;
    const std::size_t count = raise_descriptor_limit(2000);
    const std::string garbage[] = {"",
                                   "GET / HT",
                                   "\x16\x03\x01\x02\x00\x01",
                                   "{:\r\n\r\n",
                                   "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
                                   std::string(30'000, '\0')};
    std::vector<TestClient> clients;
    for (std::size_t i = 0; i < count; ++i) {
        clients.push_back(test.connect());
        ASSERT_TRUE(clients.back().is_connected()) << i;
        clients.back().send(garbage[i % std::size(garbage)]);
    }
    EXPECT_TRUE(test.is_serving());
    clients.clear();
    EXPECT_TRUE(test.is_serving());
}

// Silent connections at the limit make room for one that speaks; answers in progress do not.
TEST(HttpServer, ConnectionsHaveALimitThatSilentOnesPay) {
    TestServer test({.connections_max = 20});
    std::vector<TestClient> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(test.connect());
    EXPECT_TRUE(test.is_serving());
    silent.clear();

    std::vector<TestClient> busy;
    for (std::size_t i = 0; i < 20; ++i) {
        busy.push_back(test.connect());
        busy.back().send(TestClient::get("/wait"));
        ASSERT_TRUE(test.handler.wait([&test, i] { return test.handler.kept.size() == i + 1; }));
    }
    EXPECT_EQ(test.connect().read_response().status, 503);
    busy.clear();
    test.handler.wait([&test] { return test.handler.disconnects == 20; });
    EXPECT_TRUE(test.is_serving());
}

TEST(HttpServer, StopLetsRunningAnswersFinish) {
    TestServer test;
    TestClient idle = test.connect(), running = test.connect();
    running.send(TestClient::get("/wait"));
    Responder responder = test.handler.take_kept();
    std::thread stopper([&test] { test.server->stop(milliseconds(5000)); });
    EXPECT_TRUE(idle.is_closed_by_server());
    EXPECT_FALSE(test.connect().is_connected());
    responder.respond({.headers = {}, .body = "done"});
    const auto response = running.read_response();
    stopper.join();
    EXPECT_EQ(response.body, "done");
    EXPECT_TRUE(response.has_header("Connection: close"));
}

TEST(HttpServer, StopCutsWhatDoesNotFinishInTime) {
    TestServer test;
    TestClient client = test.connect();
    client.send(TestClient::get("/wait"));
    Responder responder = test.handler.take_kept();
    const auto start = steady_clock::now();
    test.server->stop(milliseconds(100));
    EXPECT_LT(steady_clock::now() - start, milliseconds(1000));
    EXPECT_EQ(test.handler.disconnects, 1);
    EXPECT_EQ(client.read_response().status, 0);
    EXPECT_FALSE(responder.push("late"));
}

TEST(HttpServer, ListenAddressesAreChecked) {
    TestHandler handler;
    for (const char* bad : {"", "8080", ":8080", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:1x",
                            "300.1.1.1:80", "[::1:80"})
        EXPECT_FALSE(HttpServer::create({.listen = bad, .limits = {}}, handler).ok()) << bad;
    const auto first = HttpServer::create({.listen = "localhost:0", .limits = {}}, handler);
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE((*first)->is_loopback());
    const auto taken = HttpServer::create({.listen = (*first)->address(), .limits = {}}, handler);
    EXPECT_EQ(taken.status().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace artel::api
