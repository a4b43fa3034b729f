// SPDX-License-Identifier: Apache-2.0
#include "api/openai_response.hpp"

#include <gtest/gtest.h>

namespace artel::api {
namespace {

const CompletionHead kHead{
    .kind = CompletionKind::Chat, .id = "chatcmpl-1", .created = 5, .model = "m"};

TEST(OpenAiResponse, ChunksSayNullWhereTheyHaveNothing) {
    AnswerPart middle;
    middle.content = "a\n";
    EXPECT_EQ(to_chunk_json(kHead, middle, false),
              R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m",)"
              R"("choices":[{"index":0,"delta":{"content":"a\n"},"logprobs":null,)"
              R"("finish_reason":null}]})");
    AnswerPart last;
    last.finish_reason = "stop";
    EXPECT_EQ(to_chunk_json(kHead, last, true),
              R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m",)"
              R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],)"
              R"("usage":null})");
    EXPECT_EQ(to_usage_chunk_json(kHead, {.prompt_tokens = 3, .completion_tokens = 4}),
              R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"m",)"
              R"("choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,)"
              R"("total_tokens":7}})");
}

TEST(OpenAiResponse, WholeAnswerWithLogprobs) {
    AnswerPart part;
    part.content = "é";
    part.finish_reason = "length";
    AnswerLogprob entry;
    entry.bytes = "\xC3";
    entry.logprob = -0.5F;
    entry.top = {entry};
    part.logprobs = {{entry}};
    EXPECT_EQ(to_completion_json(kHead, {part}, {.prompt_tokens = 1, .completion_tokens = 2}),
              R"({"id":"chatcmpl-1","object":"chat.completion","created":5,"model":"m",)"
              R"("choices":[{"index":0,"message":{"role":"assistant","content":"é",)"
              R"("refusal":null},"logprobs":{"content":[{"token":"�","logprob":-0.5,)"
              R"("bytes":[195],"top_logprobs":[{"token":"�","logprob":-0.5,"bytes":[195]}]}],)"
              R"("refusal":null},"finish_reason":"length"}],"usage":{"prompt_tokens":1,)"
              R"("completion_tokens":2,"total_tokens":3}})");
}

TEST(OpenAiResponse, ModelsAndErrors) {
    EXPECT_EQ(to_model_list_json({.id = "m", .created = 5, .context = 8192}),
              R"({"object":"list","data":[{"id":"m","object":"model","created":5,)"
              R"("owned_by":"artel","context_length":8192}]})");
    EXPECT_EQ(ApiError::invalid("stop", "stop: bad").to_json(),
              R"({"error":{"message":"stop: bad","type":"invalid_request_error","param":"stop",)"
              R"("code":null}})");
    ApiError lost = ApiError::of_status(503, "worker b is gone");
    lost.code = "worker_lost";
    EXPECT_EQ(to_sse_error(lost),
              "data: {\"error\":{\"message\":\"worker b is gone\",\"type\":\"server_error\","
              "\"code\":\"worker_lost\"}}\n\n");
    EXPECT_EQ(to_api_error(resource_exhausted("full")).to_response().headers.at(0).name,
              "Retry-After");
    EXPECT_EQ(to_api_error(data_loss("x")).http_status, 500);
}

}  // namespace
}  // namespace artel::api
