// SPDX-License-Identifier: Apache-2.0
#include "net/tls_transport.hpp"

#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

namespace artel::net {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

constexpr FrameFormat kTestFormat{4,
                                  [](std::span<const std::byte> header) -> Result<std::uint64_t> {
                                      std::uint32_t bytes = 0;
                                      std::memcpy(&bytes, header.data(), sizeof(bytes));
                                      return bytes;
                                  }};

SharedBytes frame_of(std::string_view text) {
    ByteWriter writer;
    writer.write<std::uint32_t>(static_cast<std::uint32_t>(text.size() + 4));
    writer.write_bytes(as_bytes(text));
    return SharedBytes(writer.take());
}
std::string text_of(const SharedBytes& frame) {
    return std::string(as_text(frame.span().subspan(4)));
}

/// A node with its own threads whose events are collected for the test to wait on.
class TestNode {
  public:
    TestNode(const NodeIdentity& identity, TransportOptions options,
             std::function<EnrolReply(const EnrolRequest&)> on_enrol = {})
        : work_(asio::make_work_guard(io_)), loop_(asio::make_strand(io_)) {
        options.format = kTestFormat;
        TransportEvents events;
        events.on_link_up = [this](const std::string& node, const std::string&,
                                   std::uint16_t version) {
            add("up " + node + " v" + std::to_string(version));
        };
        events.on_frame = [this](const std::string& node, std::size_t lane, SharedBytes frame) {
            add("frame " + node + " " + std::to_string(lane) + " " + text_of(frame));
        };
        events.on_link_down = [this](const std::string& node, const Error&) {
            add("down " + node);
        };
        events.on_enrol = std::move(on_enrol);
        transport_ = TlsTransport::create(io_, loop_, *TlsContext::create(identity), options,
                                          std::move(events));
        for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { io_.run(); });
    }
    ~TestNode() {
        on_loop([this] { transport_->stop(); });
        work_.reset();
        io_.stop();
        for (auto& thread : threads_) thread.join();
    }
    /// Runs `what` on the loop and waits for it.
    template <class What>
    std::invoke_result_t<What> on_loop(What what) {
        std::promise<std::invoke_result_t<What>> promise;
        asio::post(loop_, [&] {
            if constexpr (std::is_void_v<std::invoke_result_t<What>>) {
                what();
                promise.set_value();
            } else {
                promise.set_value(what());
            }
        });
        return promise.get_future().get();
    }
    std::uint16_t listen() {
        return *on_loop([this] { return transport_->listen("127.0.0.1:0"); });
    }
    Error dial(const std::string& node, std::uint16_t port) {
        std::promise<Error> promise;
        asio::post(loop_, [&] {
            const auto check = [node](const std::string& found) {
                return found == node
                           ? ok()
                           : unauthenticated("node '{}', expected node '{}'", found, node);
            };
            transport_->dial("127.0.0.1:" + std::to_string(port), check,
                             [&](const Error& error) { promise.set_value(error); });
        });
        return promise.get_future().get();
    }
    Error send(const std::string& node, std::size_t lane, std::string_view text) {
        return on_loop([&] { return transport_->send(node, lane, frame_of(text)); });
    }
    bool saw(const std::string& event, milliseconds patience = milliseconds(5000)) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, [&] {
            return std::find(events_.begin(), events_.end(), event) != events_.end();
        });
    }
    std::vector<std::string> events() {
        std::lock_guard lock(mutex_);
        return events_;
    }
    TlsTransport& transport() { return *transport_; }
    asio::io_context& io() { return io_; }

  private:
    void add(std::string event) {
        std::lock_guard lock(mutex_);
        events_.push_back(std::move(event));
        changed_.notify_all();
    }
    asio::io_context io_;
    asio::executor_work_guard<asio::io_context::executor_type> work_;
    TlsTransport::Loop loop_;
    std::shared_ptr<TlsTransport> transport_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> events_;
};

class TransportTest : public testing::Test {
  protected:
    TransportTest() {
        std::string name =
            (std::filesystem::temp_directory_path() / "artel-transport-XXXXXX").string();
        directory_ = ::mkdtemp(name.data());
        authority_.emplace(*ClusterAuthority::load_or_create(directory_ / "a"));
    }
    ~TransportTest() override { std::filesystem::remove_all(directory_); }
    NodeIdentity member(const std::string& node) { return *authority_->issue(node); }
    static TransportOptions versions(std::uint16_t min, std::uint16_t max) {
        TransportOptions options;
        options.versions.min = min;
        options.versions.max = max;
        return options;
    }
    std::filesystem::path directory_;
    std::optional<ClusterAuthority> authority_;
};

TEST_F(TransportTest, MembersLinkAndEachLaneKeepsItsOrder) {
    TestNode a(member("a"), versions(1, 2)), b(member("b"), versions(1, 2));
    ASSERT_TRUE(a.dial("b", b.listen()).ok());
    ASSERT_TRUE(b.saw("up a v2"));
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(a.send("b", static_cast<std::size_t>(i % 4), std::to_string(i)).ok());
        ASSERT_TRUE(b.send("a", static_cast<std::size_t>(i % 4), std::to_string(i)).ok());
    }
    for (int i = 196; i < 200; ++i) {
        EXPECT_TRUE(b.saw("frame a " + std::to_string(i % 4) + " " + std::to_string(i)));
        EXPECT_TRUE(a.saw("frame b " + std::to_string(i % 4) + " " + std::to_string(i)));
    }
    for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
        int expected = static_cast<int>(lane);
        const std::string prefix = "frame a " + std::to_string(lane) + " ";
        for (const std::string& event : b.events()) {
            if (!event.starts_with(prefix)) continue;
            EXPECT_EQ(event, prefix + std::to_string(expected));
            expected += 4;
        }
        EXPECT_EQ(expected, 200 + static_cast<int>(lane));
    }
}

TEST_F(TransportTest, ADroppedLinkIsSeenOnBothSidesAndCanComeBack) {
    TestNode b(member("b"), versions(1, 1));
    const auto port = b.listen();
    {
        TestNode a(member("a"), versions(1, 1));
        ASSERT_TRUE(a.dial("b", port).ok());
        ASSERT_TRUE(b.saw("up a v1"));
    }
    EXPECT_TRUE(b.saw("down a"));
    EXPECT_EQ(b.send("a", 0, "x").code(), ErrorCode::kUnavailable);
    TestNode again(member("a"), versions(1, 1));
    EXPECT_TRUE(again.dial("b", port).ok());
    EXPECT_TRUE(again.send("b", 1, "hello").ok());
    EXPECT_TRUE(b.saw("frame a 1 hello"));
}

// Field case: two machines started with one name replaced each other's links without end.
TEST_F(TransportTest, ANameIsTakenWhileItsProcessIsHeard) {
    TransportOptions options = versions(1, 1);
    options.limits.name_held_for = std::chrono::hours(1);
    TestNode b(member("b"), options);
    const auto port = b.listen();
    {
        TestNode a(member("a"), versions(1, 1)), rival(member("a"), versions(1, 1));
        ASSERT_TRUE(a.dial("b", port).ok());
        ASSERT_TRUE(b.saw("up a v1"));
        const Error taken = rival.dial("b", port);
        EXPECT_EQ(taken.code(), ErrorCode::kFailedPrecondition);
        EXPECT_NE(taken.message().find("another process named 'a' is connected from 127.0.0.1"),
                  std::string::npos)
            << taken.message();
        ASSERT_TRUE(a.send("b", 1, "still here").ok());
        EXPECT_TRUE(b.saw("frame a 1 still here"));
        EXPECT_TRUE(a.dial("b", port).ok()) << "the same process may replace its own link";
    }
    TestNode later(member("a"), versions(1, 1));
    while (b.on_loop([&] { return b.transport().is_linked("a"); })) std::this_thread::yield();
    EXPECT_TRUE(later.dial("b", port).ok());
}

TEST_F(TransportTest, ASilentLinkHoldsItsNameNoLonger) {
    TransportOptions options = versions(1, 1);
    options.limits.name_held_for = Duration::zero();
    TestNode b(member("b"), options);
    const auto port = b.listen();
    TestNode a(member("a"), versions(1, 1)), successor(member("a"), versions(1, 1));
    ASSERT_TRUE(a.dial("b", port).ok());
    ASSERT_TRUE(successor.dial("b", port).ok());
    EXPECT_TRUE(a.saw("down b"));
    ASSERT_TRUE(successor.send("b", 0, "mine").ok());
    EXPECT_TRUE(b.saw("frame a 0 mine"));
}

TEST_F(TransportTest, StrangersAndWrongNamesAreRefusedWithTheReason) {
    TestNode b(member("b"), versions(1, 1));
    const auto port = b.listen();
    TestNode stranger(*make_unenrolled_identity("a"), versions(1, 1));
    EXPECT_FALSE(stranger.dial("b", port).ok());
    TestNode a(member("a"), versions(1, 1));
    const Error wrong_name = a.dial("c", port);
    EXPECT_NE(wrong_name.message().find("expected node 'c'"), std::string::npos)
        << wrong_name.message();
    EXPECT_TRUE(a.dial("b", port).ok());
}

TEST_F(TransportTest, VersionsThatDoNotMeetNameAllFourNumbers) {
    TestNode b(member("b"), versions(4, 5)), a(member("a"), versions(2, 3)),
        neighbour(member("n"), versions(3, 4));
    const auto port = b.listen();
    const Error error = a.dial("b", port);
    EXPECT_NE(error.message().find("2 to 3"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("4 to 5"), std::string::npos) << error.message();
    EXPECT_TRUE(neighbour.dial("b", port).ok());
    EXPECT_TRUE(b.saw("up n v4"));
}

TEST_F(TransportTest, OneVersionWithTwoSchemasIsRefused) {
    TransportOptions other = versions(1, 1);
    other.versions.schema_hash = 7;
    TestNode b(member("b"), versions(1, 1)), a(member("a"), other);
    EXPECT_NE(a.dial("b", b.listen()).message().find("different schemas"), std::string::npos);
}

TEST_F(TransportTest, AStrangerWithTheSecretIsEnrolledAndThenAMember) {
    const auto on_enrol = [this](const EnrolRequest& request) {
        if (request.secret != std::string(16, '\7')) return EnrolReply{"wrong secret", {}, {}};
        return EnrolReply{{},
                          *authority_->sign(request.request_pem, request.node),
                          authority_->certificate_pem()};
    };
    TestNode b(member("b"), versions(1, 1), on_enrol);
    const auto port = b.listen();
    JoinKey key;
    key.authority = *authority_->fingerprint();
    key.address = "127.0.0.1:" + std::to_string(port);
    const auto ask = [&](const JoinKey& with) {
        std::promise<Result<NodeIdentity>> promise;
        enrol(b.io(), with, "newcomer", versions(1, 1),
              [&](Result<NodeIdentity> got) { promise.set_value(std::move(got)); });
        return promise.get_future().get();
    };
    EXPECT_NE(ask(key).status().message().find("wrong secret"), std::string::npos);
    key.secret.fill(7);
    const auto identity = ask(key);
    ASSERT_TRUE(identity.ok()) << identity.status().message();
    TestNode newcomer(*identity, versions(1, 1));
    EXPECT_TRUE(newcomer.dial("b", port).ok());
    EXPECT_TRUE(b.saw("up newcomer v1"));
    key.authority[0] ^= 1;  // somebody else poses as the coordinator
    EXPECT_EQ(ask(key).status().code(), ErrorCode::kUnauthenticated);
}

TEST_F(TransportTest, AFrameLongerThanTheLimitEndsTheLinkOnly) {
    TransportOptions small = versions(1, 1);
    small.limits.connection.frame_bytes_max = 100;
    TestNode b(member("b"), small);
    const auto port = b.listen();
    TestNode a(member("a"), versions(1, 1));
    ASSERT_TRUE(a.dial("b", port).ok());
    ASSERT_TRUE(a.send("b", 2, std::string(97, 'x')).ok());
    EXPECT_TRUE(b.saw("down a"));
    EXPECT_TRUE(a.saw("down b"));
    EXPECT_TRUE(a.dial("b", port).ok());
}

TEST_F(TransportTest, SilentAndGarbageConnectionsDoNotKeepMembersOut) {
    TransportOptions options = versions(1, 1);
    options.limits.unopened_connections_max = 16;
    options.limits.connection.handshake_timeout = milliseconds(300);
    TestNode b(member("b"), options);
    const auto port = b.listen();
    asio::io_context io;
    const asio::ip::tcp::endpoint endpoint(asio::ip::make_address("127.0.0.1"), port);
    std::vector<asio::ip::tcp::socket> sockets;
    for (int i = 0; i < 200; ++i) {
        asio::ip::tcp::socket socket(io);
        boost::system::error_code ignored;
        socket.connect(endpoint, ignored);
        if (i % 3 == 0) asio::write(socket, asio::buffer("GET / HTTP/1.1\r\n\r\n", 18), ignored);
        if (i % 3 != 2) sockets.push_back(std::move(socket));  // the others close at once
    }
    TestNode a(member("a"), versions(1, 1));
    Error last;
    for (int attempt = 0; attempt < 20; ++attempt) {
        last = a.dial("b", port);
        if (last.ok()) break;
        std::this_thread::sleep_for(milliseconds(100));
    }
    EXPECT_TRUE(last.ok()) << last.message();
}

TEST_F(TransportTest, NobodyListeningIsAnErrorThatNamesTheAddress) {
    TestNode a(member("a"), versions(1, 1));
    const Error error = a.dial("b", 1);
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_NE(error.message().find("127.0.0.1:1"), std::string::npos) << error.message();
    EXPECT_FALSE(split_address("nonsense").ok());
    EXPECT_FALSE(split_address("host:99999").ok());
    EXPECT_EQ(split_address("[::1]:80")->first, "::1");
}

TEST(CanBeDialled, AllButTheWildcards) {
    for (const char* address : {"127.0.0.1:80", "[::1]:80", "worker.local:80", "10.0.0.0:1"})
        EXPECT_TRUE(check_can_be_dialled(address).ok()) << address;
    for (const char* address : {"0.0.0.0:80", "[::]:80", "nonsense"})
        EXPECT_EQ(check_can_be_dialled(address).code(), ErrorCode::kInvalidArgument) << address;
}

}  // namespace
}  // namespace artel::net
