# SPDX-License-Identifier: Apache-2.0
"""A worker is killed, frozen or cut off, while the cluster loads, reads a prompt or answers.

Each round strikes the first, middle or last worker in turn. ARTEL_FAULT_ROUNDS sets the rounds of
each test (default 1, 10 for the acceptance). A cut is made by tools/link_proxy.py.
"""
import json
import os
import signal
import threading
import time

import pytest
from joined import JoinedServer
from serving import FRANCE, Server

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
ROUNDS = int(os.environ.get("ARTEL_FAULT_ROUNDS", "1"))
pytestmark = pytest.mark.slow
CONTEXT = ["--context", 8192]
ERROR_WITHIN = 10  # seconds, for every client that waits on a lost worker
BACK_WITHIN = 60
FAULTS = ["killed", "frozen", "cut"]
STORY = {"model": "test", "temperature": 0.8, "seed": 1, "max_tokens": 2000,
         "messages": [{"role": "user", "content": "Tell a very long story about a lighthouse."}]}
LONG_PROMPT = {"model": "test", "max_tokens": 1,
               "messages": [{"role": "user", "content": "word " * 6000}]}


def open_server(fault, artel, models):
    if fault == "cut":
        return JoinedServer(artel, models / SMOLLM2, *CONTEXT,
                            workers=[(["--threads", 1], None)] * 3)
    return Server(artel, models / SMOLLM2, "--local-workers", 3, *CONTEXT)


@pytest.fixture(scope="module")
def servers(artel, models):
    """servers(fault): a serving cluster of three, kept for the tests that follow."""
    kept = {}

    def get(fault):
        kind = "cut" if fault == "cut" else "local"
        if kind not in kept:
            kept[kind] = open_server(fault, artel, models)
        return kept[kind].wait_until_serving(BACK_WITHIN)
    yield get
    for server in kept.values():
        server.stop()


def strike(server, fault, index):
    """Returns what mends it. A supervised worker needs no mending: it is replaced."""
    if fault == "cut":
        server.workers[index].cut()
        return server.workers[index].restore
    end = time.time() + 10
    while f"local-{index + 1}" not in server.worker_pids():
        assert time.time() < end, "the worker was not started"
        time.sleep(0.01)
    pid = server.worker_pids()[f"local-{index + 1}"]
    os.kill(pid, signal.SIGKILL if fault == "killed" else signal.SIGSTOP)

    def wake():
        if server.worker_pids().get(f"local-{index + 1}") == pid:  # still there: nobody replaced it
            os.kill(pid, signal.SIGCONT)
    return wake


def assert_missing_is_told(server):
    end = time.time() + ERROR_WITHIN
    while time.time() < end:
        status, body = server.get("/health")
        if status == 503:
            assert body.get("message"), body
            return
    raise AssertionError("/health never said that something is missing")


def assert_answers(server):
    server.wait_until_serving(BACK_WITHIN)
    status, _, answer = server.post({"model": "test", "temperature": 0, "max_tokens": 16,
                                     "messages": FRANCE})
    assert status == 200 and "Paris" in answer["choices"][0]["message"]["content"]


@pytest.mark.parametrize("fault", FAULTS)
def test_while_answering(servers, fault):
    for round_number in range(ROUNDS):
        server = servers(fault)
        stream = server.stream(STORY, timeout=30)
        for _ in range(5):
            next(stream)
        begin = time.time()
        mend = strike(server, fault, round_number % 3)
        events = list(stream)
        seconds = time.time() - begin
        if fault == "cut":
            assert_missing_is_told(server)
        mend()
        last = json.loads(events[-1])
        assert last["error"]["code"] == "worker_lost" and last["error"]["type"] == "server_error"
        assert "[DONE]" not in events
        assert seconds < ERROR_WITHIN
        assert_answers(server)
        print(f"answering, {fault}, round {round_number}: error after {seconds:.2f} s")


@pytest.mark.parametrize("fault", FAULTS)
def test_while_reading_a_prompt(servers, fault):
    for round_number in range(ROUNDS):
        server = servers(fault)
        answers = []
        client = threading.Thread(target=lambda: answers.append(server.post(LONG_PROMPT)))
        client.start()
        time.sleep(0.7)  # the prompt takes many seconds to read
        assert not answers, "the prompt was too short to strike while it was read"
        begin = time.time()
        mend = strike(server, fault, round_number % 3)
        client.join(ERROR_WITHIN + 20)
        seconds = time.time() - begin
        mend()
        status, headers, body = answers[0]
        assert status == 503 and body["error"]["code"] == "worker_lost", body
        assert int(headers["Retry-After"]) > 0
        assert seconds < ERROR_WITHIN
        assert_answers(server)
        print(f"reading, {fault}, round {round_number}: error after {seconds:.2f} s")


def wait_until_loading(server, name):
    """Until that worker has got some of its weights and not yet all."""
    end = time.time() + BACK_WITHIN
    while time.time() < end:
        for worker in server.get("/v1/cluster")[1]["workers"]:
            if worker["name"] == name and 0 < worker["load_bytes_done"] < worker[
                    "load_bytes_total"]:
                return
        time.sleep(0.02)
    raise AssertionError(f"{name} never loaded: {server.get('/v1/cluster')}")


def wait_until_missed(server, name):
    """Until /health says that this worker is what it waits for; the seconds that it took."""
    begin = time.time()
    while time.time() < begin + ERROR_WITHIN:
        status, body = server.get("/health")
        assert status == 503, body
        if name in body["message"]:
            return time.time() - begin
        time.sleep(0.02)
    raise AssertionError(f"{name} is not missed: {server.get('/health')}")


@pytest.mark.parametrize("fault", FAULTS)
def test_while_loading(artel, models, fault):
    """The weights come from the coordinator through slow links, so that loading takes a while."""
    for round_number in range(ROUNDS):
        with JoinedServer(artel, models / SMOLLM2, *CONTEXT, streams_weights=True,
                          bandwidth=6_000_000, workers=[(["--threads", 1], None)] * 3) as server:
            worker = server.workers[round_number % 3]
            strikes = {"killed": worker.kill, "frozen": worker.freeze, "cut": worker.cut}
            mends = {"killed": worker.start, "frozen": worker.wake, "cut": worker.restore}
            wait_until_loading(server, worker.name)
            strikes[fault]()
            seconds = wait_until_missed(server, worker.name)
            status, headers, body = server.post({**STORY, "max_tokens": 1})
            assert status == 503 and int(headers["Retry-After"]) > 0, body
            assert server.process.poll() is None
            for one in server.workers:
                one.set_bandwidth(0)
            mends[fault]()
            assert_answers(server)
            print(f"loading, {fault}, round {round_number}: missed after {seconds:.2f} s")
