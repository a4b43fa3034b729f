// SPDX-License-Identifier: Apache-2.0
#include "api/text_request.hpp"

#include <gtest/gtest.h>

namespace artel::api {
namespace {

std::string with(const std::string& fields) {
    return R"({"model":"m",)" + fields + "}";
}
TextRequest accepted(const std::string& body) {
    auto parsed = parse_text_request(body);
    if (const auto* error = std::get_if<ApiError>(&parsed)) {
        ADD_FAILURE() << body << "\n" << error->message;
        return {};
    }
    return std::get<TextRequest>(std::move(parsed));
}
ApiError refused(const std::string& body) {
    auto parsed = parse_text_request(body);
    if (std::holds_alternative<TextRequest>(parsed)) {
        ADD_FAILURE() << "accepted: " << body;
        return {};
    }
    return std::get<ApiError>(std::move(parsed));
}

TEST(TextRequest, EveryFormOfAPrompt) {
    using Ids = std::vector<std::uint32_t>;
    EXPECT_EQ(accepted(with(R"("prompt":"a")")).prompts, std::vector<TextPrompt>{"a"});
    EXPECT_EQ(accepted(with(R"("prompt":["a","b"])")).prompts, (std::vector<TextPrompt>{"a", "b"}));
    EXPECT_EQ(accepted(with(R"("prompt":[1,2])")).prompts, (std::vector<TextPrompt>{Ids{1, 2}}));
    EXPECT_EQ(accepted(with(R"("prompt":[[1],[2,3]])")).prompts,
              (std::vector<TextPrompt>{Ids{1}, Ids{2, 3}}));
}

TEST(TextRequest, DefaultsAndAllFields) {
    const TextRequest plain = accepted(with(R"("prompt":"a")"));
    EXPECT_EQ(plain.tokens_max, 16U);
    EXPECT_FALSE(plain.wants_logprobs || plain.echoes || plain.is_stream);
    const TextRequest full = accepted(
        with(R"("prompt":"a","max_tokens":3,"n":2,"best_of":2,"logprobs":0,"echo":null,"suffix":"",
                "stop":"x","seed":4,"stream":true,"temperature":0,"user":"u","whatever":1)"));
    EXPECT_EQ(full.tokens_max, 3U);
    EXPECT_EQ(full.choices, 2U);
    EXPECT_TRUE(full.wants_logprobs && full.is_stream);
    EXPECT_EQ(full.top_logprobs, 0U);
    EXPECT_TRUE(accepted(with(R"("prompt":"a","echo":true)")).echoes);
}

TEST(TextRequest, RefusedFields) {
    const struct {
        const char* fields;
        const char* param;
        const char* code;
    } table[] = {
        {R"("n":1)", "prompt", ""},
        {R"("prompt":null)", "prompt", ""},
        {R"("prompt":7)", "prompt", ""},
        {R"("prompt":[])", "prompt", ""},
        {R"("prompt":[[]])", "prompt", ""},
        {R"("prompt":["a",1])", "prompt", ""},
        {R"("prompt":[1,"a"])", "prompt", ""},
        {R"("prompt":[1.5])", "prompt", ""},
        {R"("prompt":[-1])", "prompt", ""},
        {R"("prompt":[4294967296])", "prompt", ""},
        {R"("prompt":[[1],["a"]])", "prompt", ""},
        {R"("prompt":"a","max_tokens":0)", "max_tokens", ""},
        {R"("prompt":"a","logprobs":6)", "logprobs", ""},
        {R"("prompt":"a","logprobs":true)", "logprobs", ""},
        {R"("prompt":"a","logprobs":1,"echo":true)", "logprobs", "unsupported_parameter"},
        {R"("prompt":"a","suffix":"b")", "suffix", "unsupported_parameter"},
        {R"("prompt":"a","best_of":3)", "best_of", "unsupported_parameter"},
        {R"("prompt":"a","best_of":21)", "best_of", ""},
        {R"("prompt":"a","n":9)", "n", "unsupported_parameter"},
        {R"("prompt":"a","stop":["1","2","3","4","5"])", "stop", ""},
        {R"("prompt":"a","stream_options":{"include_usage":true})", "stream_options", ""},
    };
    for (const auto& [fields, param, code] : table) {
        const ApiError error = refused(with(fields));
        EXPECT_EQ(error.http_status, 400) << fields;
        EXPECT_EQ(error.param, param) << fields << error.message;
        EXPECT_EQ(error.code, code) << fields;
    }
    std::string many = R"("prompt":["a")";
    for (std::size_t i = 0; i < kPromptsMax; ++i) many += R"(,"a")";
    EXPECT_EQ(refused(with(many + "]")).param, "prompt");
    EXPECT_EQ(refused("[]").http_status, 400);
}

}  // namespace
}  // namespace artel::api
