// SPDX-License-Identifier: Apache-2.0
#include "api/http_parser.hpp"

#include <gtest/gtest.h>

#include <string>

namespace artel::api {
namespace {

using Progress = HttpParser::Progress;

/// Feeds `bytes` as one piece until the parser wants more, is complete or refuses.
Progress feed_all(HttpParser& parser, std::string_view& bytes) {
    Progress progress = parser.feed(bytes);
    while (progress == Progress::HeaderDone) progress = parser.feed(bytes);
    return progress;
}

int refusal_of(std::string_view bytes, HttpParserLimits limits = {}) {
    HttpParser parser(limits);
    return feed_all(parser, bytes) == Progress::Refused ? parser.refusal().status : 0;
}

TEST(HttpParser, SplitsTargetAndLowersHeaderNames) {
    HttpParser parser({});
    std::string_view bytes = "GET /v1/models?limit=2 HTTP/1.1\r\nX-Thing: A b\r\n\r\n";
    ASSERT_EQ(feed_all(parser, bytes), Progress::Complete);
    const HttpRequest request = parser.take();
    EXPECT_EQ(request.method, "GET");
    EXPECT_EQ(request.path, "/v1/models");
    EXPECT_EQ(request.query, "limit=2");
    EXPECT_EQ(request.header("x-thing"), "A b");
    EXPECT_TRUE(request.keep_alive);
}

// However the bytes are cut, the request is the same (content length and chunked).
TEST(HttpParser, AnyCutGivesTheSameRequest) {
    const std::string sent[] = {"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
                                "POST /a HTTP/1.1\r\nTransfer-Encoding: "
                                "chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"};
    for (const std::string& whole : sent)
        for (std::size_t cut = 1; cut < whole.size(); ++cut) {
            HttpParser parser({});
            std::string buffer = whole.substr(0, cut);
            std::string_view rest = buffer;
            ASSERT_EQ(feed_all(parser, rest), Progress::NeedMore) << cut;
            buffer = std::string(rest) + whole.substr(cut);
            rest = buffer;
            ASSERT_EQ(feed_all(parser, rest), Progress::Complete) << cut;
            EXPECT_TRUE(rest.empty());
            EXPECT_EQ(parser.take().body, "hello");
        }
}

TEST(HttpParser, PipelinedRequestStaysWithTheCaller) {
    HttpParser parser({});
    std::string_view bytes =
        "POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /b HTTP/1.1\r\n\r\n";
    ASSERT_EQ(feed_all(parser, bytes), Progress::Complete);
    EXPECT_EQ(parser.take().body, "hi");
    ASSERT_EQ(feed_all(parser, bytes), Progress::Complete);
    EXPECT_EQ(parser.take().path, "/b");
}

TEST(HttpParser, RefusesWhatItMust) {
    EXPECT_EQ(refusal_of("{: nonsense\r\n\r\n"), 400);
    EXPECT_EQ(refusal_of("GET / HTTP/3.0\r\n\r\n"), 400);
    EXPECT_EQ(refusal_of("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls hello"), 400);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 400);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
              400);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
                         "\r\n0\r\n\r\n"),
              400);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"), 501);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 400);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nContent-Length: 17000000\r\n\r\n"), 413);
    EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nA: " + std::string(20'000, 'x') + "\r\n\r\n"), 431);
    EXPECT_EQ(refusal_of("GET /" + std::string(20'000, 'x')), 431);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                         std::string(20'000, 'x')),
              400);
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n",
                         {.body_bytes_max = 5}),
              413);
}

}  // namespace
}  // namespace artel::api
