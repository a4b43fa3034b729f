// SPDX-License-Identifier: Apache-2.0
#include "api/openai_request.hpp"

#include <gtest/gtest.h>

#include <string>

namespace artel::api {
namespace {

/// A legal body with more fields put in.
std::string with(const std::string& fields) {
    return R"({"model":"m","messages":[{"role":"user","content":"hi"}])" +
           (fields.empty() ? "" : "," + fields) + "}";
}
std::string with_messages(const std::string& messages) {
    return R"({"model":"m","messages":)" + messages + "}";
}
ChatRequest accepted(const std::string& body) {
    auto parsed = parse_chat_request(body);
    if (const auto* error = std::get_if<ApiError>(&parsed)) {
        ADD_FAILURE() << body << "\n" << error->message;
        return {};
    }
    return std::get<ChatRequest>(std::move(parsed));
}
ApiError refused(const std::string& body) {
    auto parsed = parse_chat_request(body);
    if (std::holds_alternative<ChatRequest>(parsed)) {
        ADD_FAILURE() << "accepted: " << body;
        return {};
    }
    return std::get<ApiError>(std::move(parsed));
}

TEST(OpenAiRequest, DefaultsAndAllFields) {
    const ChatRequest plain = accepted(with(""));
    EXPECT_EQ(plain.sampling.temperature, 1.0F);
    EXPECT_FALSE(plain.tokens_max || plain.sampling.seed || plain.is_stream);

    const ChatRequest full = accepted(with(
        R"("max_tokens":7,"temperature":0.5,"top_p":0.25,"top_k":40,"min_p":0.125,"seed":12,
           "presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.5,"stop":["a","b"],
           "stream":true,"stream_options":{"include_usage":true},"logit_bias":{"3":-100,"4":5},
           "logprobs":true,"top_logprobs":3,"user":"x","unknown_field":{"a":[1]},"n":1)"));
    EXPECT_EQ(full.tokens_max, 7U);
    EXPECT_EQ(full.sampling.temperature, 0.5F);
    EXPECT_EQ(full.sampling.top_k, 40U);
    EXPECT_EQ(full.sampling.seed, 12U);
    EXPECT_EQ(full.sampling.presence_penalty, -2.0F);
    ASSERT_EQ(full.sampling.logit_bias.size(), 2U);
    EXPECT_EQ(full.sampling.logit_bias[0], (std::pair<std::uint32_t, float>(3, -100.0F)));
    EXPECT_EQ(full.stops, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(full.is_stream && full.includes_usage && full.wants_logprobs);
    EXPECT_EQ(full.top_logprobs, 3U);
}

TEST(OpenAiRequest, NullIsAbsent) {
    const ChatRequest request = accepted(
        with(R"("max_tokens":null,"max_completion_tokens":null,"temperature":null,"top_p":null,
                "stop":null,"seed":null,"stream":null,"stream_options":null,"n":null,"tools":null,
                "response_format":null,"logit_bias":null,"logprobs":null,"audio":null)"));
    EXPECT_FALSE(request.tokens_max.has_value());
    EXPECT_EQ(accepted(with(R"("max_tokens":3,"max_completion_tokens":5)")).tokens_max, 5U);
}

TEST(OpenAiRequest, LegalMessages) {
    const auto rendered = [](const std::string& messages) {
        return accepted(with_messages(messages)).messages_json;
    };
    EXPECT_EQ(rendered(R"([{"role":"developer","content":"d"},{"content":"u","role":"user"}])"),
              R"([{"role":"system","content":"d"},{"role":"user","content":"u"}])");
    EXPECT_EQ(rendered(R"([{"role":"user","content":[{"type":"text","text":"a"},
                           {"type":"text","text":"b"}],"name":"bob","extra":1}])"),
              R"([{"role":"user","content":"a\nb","name":"bob"}])");
    for (const char* content : {R"(,"content":null)", "", R"(,"content":"")"})
        EXPECT_EQ(rendered(R"([{"role":"assistant")" + std::string(content) + "}]"),
                  R"([{"role":"assistant","content":""}])");
    EXPECT_EQ(
        rendered(R"([{"role":"assistant","content":null,"tool_calls":[{"id":null,
                           "type":"function","function":{"name":"f","arguments":"{\"b\":1}"}}]},
                           {"role":"tool","content":[],"tool_call_id":"call_0"}])"),
        R"([{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function",)"
        R"("function":{"name":"f","arguments":{"b":1}}}]},)"
        R"({"role":"tool","content":"","tool_call_id":"call_0"}])");
}

TEST(OpenAiRequest, ToolsReachTheTemplateUnlessTheChoiceIsNone) {
    const std::string tools =
        R"("tools":[{"type":"function","function":{"parameters":{"type":"object","b":1,"a":2},
           "name":"f","description":"d","strict":false}},
           {"type":"function","function":{"name":"g"}}])";
    EXPECT_EQ(accepted(with(tools)).tools_json,
              R"([{"type":"function","function":{"name":"f","description":"d",)"
              R"("parameters":{"type":"object","b":1,"a":2}}},)"
              R"({"type":"function","function":{"name":"g","description":"",)"
              R"("parameters":{"type":"object","properties":{}}}}])");
    EXPECT_EQ(accepted(with(tools + R"(,"tool_choice":"none")")).tools_json, "");
    EXPECT_TRUE(accepted(with(tools)).allows_parallel_calls);
    EXPECT_FALSE(accepted(with(R"("parallel_tool_calls":false)")).allows_parallel_calls);
}

// Every body here must be refused with the field's name.
// Long because it is a table.
TEST(OpenAiRequest, RefusedFields) {
    const struct {
        const char* fields;
        const char* param;
    } table[] = {
        {R"("max_tokens":"10")", "max_tokens"},
        {R"("max_tokens":-1)", "max_tokens"},
        {R"("max_tokens":0)", "max_tokens"},
        {R"("max_tokens":1.5)", "max_tokens"},
        {R"("max_tokens":18446744073709551616)", "max_tokens"},
        {R"("max_completion_tokens":true)", "max_completion_tokens"},
        {R"("temperature":-1)", "temperature"},
        {R"("temperature":2.01)", "temperature"},
        {R"("temperature":"10")", "temperature"},
        {R"("temperature":18446744073709551616)", "temperature"},
        {R"("top_p":1.1)", "top_p"},
        {R"("top_p":"10")", "top_p"},
        {R"("top_p":-1)", "top_p"},
        {R"("n":"10")", "n"},
        {R"("n":0)", "n"},
        {R"("n":-1)", "n"},
        {R"("seed":"10")", "seed"},
        {R"("seed":-1)", "seed"},
        {R"("seed":18446744073709551616)", "seed"},
        {R"("min_p":2)", "min_p"},
        {R"("top_k":-1)", "top_k"},
        {R"("presence_penalty":3)", "presence_penalty"},
        {R"("frequency_penalty":-3)", "frequency_penalty"},
        {R"("repetition_penalty":0)", "repetition_penalty"},
        {R"("stop":1)", "stop"},
        {R"("stop":[1])", "stop"},
        {R"("stop":"")", "stop"},
        {R"("stop":["","x"])", "stop"},
        {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])",
         "stop"},
        {R"("stream":1)", "stream"},
        {R"("stream":"true")", "stream"},
        {R"("stream_options":[])", "stream_options"},
        {R"("stream_options":{"include_usage":"yes"})", "stream_options.include_usage"},
        {R"("logit_bias":[])", "logit_bias"},
        {R"("logit_bias":{"x":1})", "logit_bias"},
        {R"("logit_bias":{"-1":1})", "logit_bias"},
        {R"("logit_bias":{"1":101})", "logit_bias"},
        {R"("logit_bias":{"1":"a"})", "logit_bias"},
        {R"("top_logprobs":2)", "top_logprobs"},
        {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
        {R"("response_format":"text")", "response_format"},
        {R"("response_format":{})", "response_format"},
        {R"("response_format":{"type":7})", "response_format"},
        {R"("response_format":{"type":"xml"})", "response_format"},
        {R"("stop":["1","2","3","4","5"])", "stop"},
        {R"("stream_options":{"include_usage":true})", "stream_options"},
        {R"("user":7)", "user"},
        {R"("metadata":"a")", "metadata"},
        {R"("parallel_tool_calls":"no")", "parallel_tool_calls"},
        {R"("tool_choice":"maybe")", "tool_choice"},
        {R"("tools":{})", "tools"},
        {R"("tools":[1])", "tools[0]"},
        {R"("tools":[{}])", "tools[0].type"},
        {R"("tools":[{"type":"function"}])", "tools[0].function"},
        {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
        {R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools[0].function.name"},
        {R"("tools":[{"type":"function","function":{"name":"f","parameters":"x"}}])",
         "tools[0].function.parameters"},
        {R"("tools":[{"type":"function","function":{"name":"f"}},
                     {"type":"function","function":{"name":"f"}}])",
         "tools[1].function.name"},
    };
    for (const auto& [fields, param] : table) {
        const ApiError error = refused(with(fields));
        EXPECT_EQ(error.http_status, 400) << fields;
        EXPECT_EQ(error.param, param) << fields << error.message;
        EXPECT_EQ(error.type, "invalid_request_error");
    }
    EXPECT_EQ(refused(R"({"messages":[{"role":"user","content":"hi"}]})").param, "model");
    EXPECT_EQ(refused(R"({"model":7,"messages":[{"role":"user","content":"hi"}]})").param, "model");
    EXPECT_EQ(refused(R"({"model":"m"})").param, "messages");
}

TEST(OpenAiRequest, RefusedMessages) {
    const struct {
        const char* messages;
        const char* param;
    } table[] = {
        {"[]", "messages"},
        {"{}", "messages"},
        {"\"hi\"", "messages"},
        {"null", "messages"},
        {"[1]", "messages[0]"},
        {R"([{"role":"user","content":"a"},{"content":"b"}])", "messages[1].role"},
        {R"([{"role":"robot","content":"b"}])", "messages[0].role"},
        {R"([{"role":7,"content":"b"}])", "messages[0].role"},
        {R"([{"role":"user"}])", "messages[0].content"},
        {R"([{"role":"user","content":null}])", "messages[0].content"},
        {R"([{"role":"user","content":5}])", "messages[0].content"},
        {R"([{"role":"user","content":["a"]}])", "messages[0].content"},
        {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content"},
        {R"([{"role":"user","content":[{"type":"text","text":1}]}])", "messages[0].content"},
        {R"([{"role":"user","content":"a","name":5}])", "messages[0].name"},
        {R"([{"role":"assistant","tool_calls":{}}])", "messages[0].tool_calls"},
        {R"([{"role":"assistant","tool_calls":[{}]}])", "messages[0].tool_calls"},
        {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}])",
         "messages[0].tool_calls"},
    };
    for (const auto& [messages, param] : table) {
        const ApiError error = refused(with_messages(messages));
        EXPECT_EQ(error.http_status, 400) << messages;
        EXPECT_EQ(error.param, param) << messages << error.message;
    }
    const ApiError image = refused(with_messages(
        R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"));
    EXPECT_EQ(image.code, "unsupported_parameter");
}

TEST(OpenAiRequest, FieldsThatAreNotBuiltYet) {
    for (const char* fields :
         {R"("n":9)", R"("tool_choice":"required")", R"("functions":[{"name":"f"}])",
          R"("tool_choice":{"type":"function","function":{"name":"f"}})", R"("store":true)",
          R"("tools":[{"type":"custom","custom":{"name":"f"}}])",
          R"("tools":[{"type":"function","function":{"name":"f","strict":true}}])",
          R"("web_search_options":{"search_context_size":"low"})", R"("service_tier":"flex")",
          R"("reasoning_effort":"high")", R"("verbosity":"low")", R"("grammar":"root ::= x")",
          R"("guided_json":{"type":"object"})", R"("function_call":{"name":"f"})",
          R"("response_format":{"type":"json_object"})", R"("audio":{"voice":"x"})",
          R"("response_format":{"type":"json_schema","json_schema":{}})",
          R"("modalities":["text","audio"])", R"("prediction":{"type":"content"})"}) {
        const ApiError error = refused(with(fields));
        EXPECT_EQ(error.http_status, 400);
        EXPECT_EQ(error.code, "unsupported_parameter") << fields;
    }
    for (const char* fields :
         {R"("tools":[])", R"("tool_choice":"none")", R"("tool_choice":"auto")",
          R"("functions":[])", R"("response_format":{"type":"text"})", R"("modalities":["text"])",
          R"("service_tier":"auto")", R"("service_tier":"default")", R"("n":8)",
          R"("prediction":null)", R"("web_search_options":{})", R"("reasoning_effort":"medium")",
          R"("function_call":"none")", R"("user":"u")", R"("parallel_tool_calls":true)",
          R"("metadata":{"a":"b"},"store":false)"})
        accepted(with(fields));
}

TEST(OpenAiRequest, BodiesThatAreNoRequestAtAll) {
    for (const std::string& body :
         {std::string(), std::string("[]"), std::string("7"), std::string("null"),
          std::string("\"x\""), std::string("{:"), std::string(3000, '['),
          std::string(1'000'000, '['), std::string("\xFF\xFE{}"), std::string(100, '\0'),
          with(R"("temperature":1e999)"), with(R"("temperature":NaN)"),
          with(R"("temperature":1,"temperature":1)"), with("\"stop\":\"\xC3\"")}) {
        const ApiError error = refused(body);
        EXPECT_EQ(error.http_status, 400);
        EXPECT_EQ(error.type, "invalid_request_error");
        EXPECT_FALSE(error.message.empty());
    }
}

}  // namespace
}  // namespace artel::api
