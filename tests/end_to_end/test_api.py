# SPDX-License-Identifier: Apache-2.0
"""The OpenAI API beyond the main job, against two worker processes: the official client where it
has a call for it, raw requests where not."""
import http.client
import json

import openai
import pytest
from serving import FRANCE, Server

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def server(artel, models):
    with Server(artel, models / SMOLLM2, "--local-workers", 2, "--context", 1024,
                "--parallel", 8) as server:
        yield server.wait_until_serving()


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none",
                         max_retries=0)


def complete(client, prompt=PROMPT, **options):
    return client.completions.create(model="test", prompt=prompt,
                                     **{"max_tokens": 8, "temperature": 0, **options})


def token_ids(server, text):
    return server.post({"content": text}, "/tokenize")[2]["tokens"]


def test_a_text_completion_takes_text_or_token_ids(client, server):
    by_text = complete(client)
    by_ids = complete(client, token_ids(server, PROMPT))
    assert "Paris" in by_text.choices[0].text
    assert by_ids.choices[0].text == by_text.choices[0].text
    assert by_text.usage.completion_tokens == 8


def test_several_prompts_are_answered_in_order(client):
    prompts = [PROMPT, "Two and two make"]
    together = complete(client, prompts)
    assert [choice.index for choice in together.choices] == [0, 1]
    assert [choice.text for choice in together.choices] == \
        [complete(client, prompt).choices[0].text for prompt in prompts]


def test_a_streamed_completion_says_the_same(client):
    whole = complete(client)
    pieces = list(complete(client, stream=True))
    assert "".join(p.choices[0].text for p in pieces if p.choices) == whole.choices[0].text


def test_echo_gives_the_prompt_back(client):
    assert complete(client, echo=True).choices[0].text.startswith(PROMPT)


def test_logprobs_of_a_completion(client):
    logprobs = complete(client, logprobs=3).choices[0].logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == 8
    assert all(value <= 0 for value in logprobs.token_logprobs)
    assert all(len(top) >= 3 for top in logprobs.top_logprobs)


def test_several_answers_to_one_chat(client):
    answer = client.chat.completions.create(model="test", n=3, max_tokens=12, temperature=1.3,
                                            seed=3, messages=FRANCE)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1
    assert answer.usage.completion_tokens > 12


def test_chat_logprobs(client):
    answer = client.chat.completions.create(model="test", max_tokens=4, temperature=0,
                                            logprobs=True, top_logprobs=2, messages=FRANCE)
    tokens = answer.choices[0].logprobs.content
    assert len(tokens) == 4
    for token in tokens:
        assert token.logprob == max(top.logprob for top in token.top_logprobs)
        assert bytes(token.bytes).decode(errors="replace")


def test_logit_bias_forbids_and_forces(client, server):
    paris = token_ids(server, " Paris")[0]
    assert "Paris" not in complete(client, logit_bias={str(paris): -100}).choices[0].text
    assert complete(client, "Say", max_tokens=2,
                    logit_bias={str(paris): 100}).choices[0].text == " Paris Paris"


def test_stop_strings_end_an_answer_and_are_left_out(client):
    whole = complete(client, max_tokens=16).choices[0].text
    stop = whole[4:7]
    cut = complete(client, max_tokens=16, stop=[stop]).choices[0]
    assert cut.finish_reason == "stop"
    assert cut.text == whole[:whole.index(stop)]


def test_tokens_of_a_text_and_back(server):
    text = "Grüße, 世界! 🦙 <|im_end|>"
    ids = token_ids(server, text)
    status, _, body = server.post({"tokens": ids}, "/detokenize")
    assert status == 200 and body["content"] == text


@pytest.mark.parametrize("path, body, status, code", [
    ("/v1/chat/completions", {"messages": FRANCE, "model": "other"}, 404, "model_not_found"),
    ("/v1/chat/completions", {"messages": FRANCE, "store": True}, 400, "unsupported_parameter"),
    ("/v1/chat/completions", {"messages": FRANCE, "modalities": ["audio"]}, 400,
     "unsupported_parameter"),
    ("/v1/chat/completions", {"messages": FRANCE, "temperature": 3}, 400, None),
    ("/v1/chat/completions", {"messages": FRANCE, "n": 0}, 400, None),
    ("/v1/chat/completions", {"messages": []}, 400, None),
    ("/v1/completions", {"prompt": PROMPT, "suffix": "."}, 400, "unsupported_parameter"),
    ("/v1/completions", {"prompt": [1, "x"]}, 400, None),
    ("/v1/completions", {"prompt": [10 ** 9]}, 400, None),
    ("/v1/completions", {"prompt": "word " * 3000}, 400, "context_length_exceeded"),
    ("/v1/embeddings", {"input": "x"}, 400, "unsupported_model"),
    ("/v1/nothing", {}, 404, None),
])
def test_refusals_are_typed(server, path, body, status, code):
    found, _, answer = server.post({"model": "test", **body}, path)
    assert found == status, answer
    assert answer["error"]["message"] and answer["error"]["type"]
    if code:
        assert answer["error"]["code"] == code
    assert server.get("/health")[0] == 200


def test_unknown_fields_and_nulls_are_ignored(server):
    status, _, _ = server.post({"model": "test", "messages": FRANCE, "max_tokens": 1,
                                "some_future_field": {"a": [1]}, "stop": None, "seed": None})
    assert status == 200


def test_metrics_count_what_was_done(server):
    def metrics():
        connection = server.connect()
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.getheader("Content-Type").startswith("text/plain")
        lines = answer.read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    before = metrics()
    server.post({"model": "test", "messages": FRANCE, "max_tokens": 3})
    after = metrics()
    for name, more in [('artel_completions_total{outcome="ok"}', 1),
                       ("artel_generated_tokens_total", 3)]:
        assert float(after[name]) == float(before.get(name, 0)) + more, name
    assert float(after["artel_prompt_tokens_total"]) > float(before["artel_prompt_tokens_total"])



def test_the_cluster_tells_who_holds_what(server):
    status, body = server.get("/v1/cluster")
    assert status == 200 and body["state"] == "ok"
    workers = body["workers"]
    assert [worker["name"] for worker in workers] == ["local-1", "local-2"]
    assert sum(worker["layers"]["count"] for worker in workers) == 30
    assert all(worker["state"] == "ready" and worker["weight_bytes"] > 0 for worker in workers)


def test_each_answer_has_a_request_id(server):
    ids = set()
    for _ in range(2):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("POST", "/v1/completions",
                           json.dumps({"model": "test", "prompt": "x", "max_tokens": 1}))
        answer = connection.getresponse()
        answer.read()
        ids.add(answer.getheader("X-Request-Id"))
    assert None not in ids and len(ids) == 2
