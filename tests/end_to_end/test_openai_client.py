# SPDX-License-Identifier: Apache-2.0
"""The main job: a real model split over worker processes, used through the official client."""
import json
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from serving import FRANCE, Server, content

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = {"model": "test", "temperature": 0, "max_tokens": 24}


@pytest.fixture(scope="module", params=[2, 3], ids=["2 workers", "3 workers"])
def server(request, artel, models):
    with Server(artel, models / SMOLLM2, "--local-workers", request.param, "--context", 2048,
                "--parallel", 8) as server:
        server.wait_until_serving()
        yield server


@pytest.fixture()
def client(server):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none",
                         max_retries=0)


def test_answers_paris(client):
    answer = client.chat.completions.create(messages=FRANCE, **TEXT)
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_the_stream_says_the_same(client):
    whole = client.chat.completions.create(messages=FRANCE, **TEXT)
    chunks = list(client.chat.completions.create(messages=FRANCE, stream=True,
                                                 stream_options={"include_usage": True}, **TEXT))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    ends = [c.choices[0].finish_reason for c in chunks if c.choices]
    reasons = [reason for reason in ends if reason]
    assert text == whole.choices[0].message.content
    assert reasons == [whole.choices[0].finish_reason]
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage


def test_a_seed_repeats_and_another_does_not(client):
    def answer(seed):
        return client.chat.completions.create(
            messages=[{"role": "user", "content": "Write a sentence about the sea."}], model="test",
            temperature=1.2, seed=seed, max_tokens=24).choices[0].message.content
    assert answer(1) == answer(1)
    assert len({answer(seed) for seed in range(4)}) > 1


def test_32_streams_at_once_give_their_one_by_one_answers(server):
    prompts = [f"Name {count} animals that live in {place}." for count in (2, 3, 4, 5)
               for place in ("Africa", "the sea", "a house", "the woods", "Asia", "a river",
                             "the desert", "a zoo")]

    def ask(prompt):
        body = {**TEXT, "max_tokens": 12, "messages": [{"role": "user", "content": prompt}]}
        return "".join(content(event) for event in server.stream(body) if event != "[DONE]")
    alone = [ask(prompt) for prompt in prompts]
    with ThreadPoolExecutor(len(prompts)) as pool:
        together = list(pool.map(ask, prompts))
    assert together == alone
    assert len(set(alone)) > 16


def test_a_stop_string_is_not_shown_and_ends_the_answer(server):
    body = {**TEXT, "messages": FRANCE, "stop": ["Paris"]}
    status, _, answer = server.post(body)
    assert status == 200 and answer["choices"][0]["finish_reason"] == "stop"
    assert "Pari" not in answer["choices"][0]["message"]["content"]


def test_a_prompt_longer_than_the_context_names_both_numbers(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            messages=[{"role": "user", "content": "word " * 4000}], **TEXT)
    assert refused.value.code == "context_length_exceeded"
    assert "2048" in str(refused.value) and "40" in str(refused.value)


def test_an_unknown_model_is_404(client):
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(messages=FRANCE, model="gpt-9")


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["test"]
    assert client.models.retrieve("test").id == "test"


def test_control_tokens_in_a_message_stay_text(server):
    def prompt_tokens(text):
        body = {**TEXT, "max_tokens": 1, "messages": [{"role": "user", "content": text}]}
        return server.post(body)[2]["usage"]["prompt_tokens"]
    assert prompt_tokens("a<|im_end|>b") > prompt_tokens("ab") + 2


def test_a_client_that_goes_away_frees_its_place(server):
    for _ in range(12):  # more than there are places
        stream = server.stream({**TEXT, "max_tokens": 500, "messages": FRANCE})
        next(stream)
        stream.close()
    status, _, answer = server.post({**TEXT, "messages": FRANCE}, timeout=30)
    assert status == 200 and "Paris" in answer["choices"][0]["message"]["content"]


def test_bad_bodies_are_400_and_the_server_goes_on(server):
    bodies = [b"{:", b"[" * 100000, b'{"messages":"x"}', b'{"messages":[],"model":"test"}',
              b"\xff\xfe",
              json.dumps({**TEXT, "messages": FRANCE, "temperature": "hot"}).encode(),
              json.dumps({**TEXT, "messages": FRANCE, "max_tokens": -1}).encode()]
    for body in bodies:
        connection = server.connect(10)
        connection.request("POST", "/v1/chat/completions", body,
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 400, (body[:40], answer.status)
        assert "error" in json.loads(answer.read())
    assert server.get("/health")[0] == 200
