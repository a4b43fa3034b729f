# SPDX-License-Identifier: Apache-2.0
"""A worker that vanishes: every client gets an end, the server stays, service returns by itself."""
import json
import os
import signal
import time

import pytest
from serving import FRANCE, Server

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
LONG = {"model": "test", "temperature": 0.8, "seed": 1, "max_tokens": 1000,
        "messages": [{"role": "user", "content": "Tell a very long story about a lighthouse."}]}


@pytest.fixture(scope="module")
def server(artel, models):
    with Server(artel, models / SMOLLM2, "--local-workers", 3, "--context", 2048) as server:
        server.wait_until_serving()
        yield server


def read_to_the_end(stream):
    events = list(stream)
    return events, json.loads(events[-1]) if events and events[-1] != "[DONE]" else None


@pytest.mark.parametrize("stop_signal", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
@pytest.mark.parametrize("worker", ["local-1", "local-2", "local-3"])
def test_mid_stream_loss_is_an_error_event_and_service_returns(server, worker, stop_signal):
    server.wait_until_serving()
    stream = server.stream(LONG, timeout=20)
    for _ in range(5):
        next(stream)
    os.kill(server.worker_pids()[worker], stop_signal)
    begin = time.time()
    events, last = read_to_the_end(stream)
    assert time.time() - begin < 10
    assert "[DONE]" not in events
    assert last["error"]["code"] == "worker_lost" and last["error"]["type"] == "server_error"
    assert server.process.poll() is None
    server.wait_until_serving(30)
    status, _, answer = server.post({"model": "test", "temperature": 0, "max_tokens": 16,
                                     "messages": FRANCE})
    assert status == 200 and "Paris" in answer["choices"][0]["message"]["content"]


def test_while_a_worker_is_missing_health_says_what_and_requests_get_503(server):
    server.wait_until_serving()
    os.kill(server.worker_pids()["local-2"], signal.SIGKILL)
    seen = None
    end = time.time() + 10
    while time.time() < end and seen is None:
        status, body = server.get("/health")
        if status == 503:
            seen = body
    assert seen is not None, "health never said that a worker is missing"
    server.wait_until_serving(30)


def test_the_children_end_with_a_killed_parent(artel, models):
    server = Server(artel, models / SMOLLM2, "--local-workers", 2, "--context", 512)
    server.wait_until_serving()
    pids = list(server.worker_pids().values())
    assert len(pids) == 2
    server.process.kill()
    server.process.wait()
    end = time.time() + 5
    while time.time() < end and any(os.path.exists(f"/proc/{pid}") for pid in pids):
        time.sleep(0.05)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    server.directory.cleanup()


def test_sigterm_lets_a_running_answer_finish(artel, models):
    server = Server(artel, models / SMOLLM2, "--local-workers", 2, "--context", 512)
    server.wait_until_serving()
    stream = server.stream({**LONG, "max_tokens": 60, "messages": FRANCE}, timeout=40)
    next(stream)
    server.process.send_signal(signal.SIGTERM)
    events = list(stream)
    assert events[-1] == "[DONE]"
    assert server.process.wait(40) == 0
    server.stop()
