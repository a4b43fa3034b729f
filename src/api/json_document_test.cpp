// SPDX-License-Identifier: Apache-2.0
#include "api/json_document.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace artel::api {
namespace {

std::string problem_of(std::string_view text) {
    const auto parsed = parse_json(text);
    return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(JsonDocument, KeepsOrderAndValues) {
    const auto parsed =
        parse_json(R"({"z":[1,-2,2.5,"\u00e9\ud83d\ude00"],"a":{"b":null,"c":true},"e":{}})");
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(to_text(*parsed),
              "{\"z\":[1,-2,2.5,\"\xC3\xA9\xF0\x9F\x98\x80\"],"
              "\"a\":{\"b\":null,\"c\":true},\"e\":{}}");
}

TEST(JsonDocument, RefusesWhatIsNotJson) {
    for (const char* bad :
         {"", "{:", "{\"a\":}", "[1,]", "{\"a\":1}x", "NaN", "[Infinity]", "[1e999]", "[-1e999]",
          "\"\\ud800\"", "\"\x80\"", "\"\xC0\xAF\"", "[01]", "'a'", "\"\n\"", "tru"})
        EXPECT_NE(problem_of(bad).find("not valid JSON"), std::string::npos) << bad;
    EXPECT_NE(problem_of(std::string("{\"a\":1\0}", 8)), "");
}

TEST(JsonDocument, RefusesAKeyThatStandsTwice) {
    EXPECT_NE(problem_of(R"({"a":1,"b":{"a":2},"a":3})").find("'a' appears twice"),
              std::string::npos);
    EXPECT_EQ(problem_of(R"([{"a":1},{"a":{"a":1}}])"), "");
}

TEST(JsonDocument, NestingHasALimit) {
    const auto nested = [](std::size_t depth) {
        return std::string(depth, '[') + std::string(depth, ']');
    };
    EXPECT_EQ(problem_of(nested(kJsonDepthMax)), "");
    EXPECT_NE(problem_of(nested(kJsonDepthMax + 1)).find("64 levels"), std::string::npos);
    EXPECT_NE(problem_of(std::string(16'000'000, '[')).find("64 levels"), std::string::npos);
    EXPECT_NE(problem_of(std::string(60'000, '(')), "");
}

TEST(JsonDocument, ManyValuesAreRefusedAndManyKeysAreFast) {
    std::string many = "[0";
    for (std::size_t i = 0; i < kJsonValuesMax; ++i) many += ",0";
    EXPECT_NE(problem_of(many + "]").find("values"), std::string::npos);
    std::string keys = "{\"k\":0";  // quadratic look-ups would take minutes
    for (int i = 0; i < 200'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
    EXPECT_EQ(problem_of(keys + "}"), "");
}

}  // namespace
}  // namespace artel::api
