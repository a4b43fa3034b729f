# SPDX-License-Identifier: Apache-2.0
"""Three unlike workers with an uneven split answer, byte for byte, as one process does."""
import json

import pytest
from joined import JoinedServer
from serving import FRANCE, Server

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
UNLIKE = [(["--threads", 1, "--memory", "1GiB"], None),
          (["--threads", 2], {"ARTEL_CPU_ISA": "scalar"}),
          (["--threads", 1], {"ARTEL_CPU_ISA": "avx2"})]
REQUESTS = [{"model": "test", "temperature": 0, "max_tokens": 24, "messages": FRANCE},
            {"model": "test", "temperature": 1.2, "seed": 7, "max_tokens": 24,
             "messages": [{"role": "user", "content": "Write a sentence about the sea."}]}]
LOGPROBS = {"logprobs": True, "top_logprobs": 5}


def answers(server):
    server.wait_until_serving()
    found = []
    for request in REQUESTS:
        status, _, body = server.post({**request, **LOGPROBS})
        assert status == 200, body
        found.append(json.dumps(body["choices"], sort_keys=True))
    return found


@pytest.mark.slow
def test_unlike_workers_give_the_bytes_of_one(artel, models):
    with open("/proc/cpuinfo") as cpu:
        if "avx2" not in cpu.read():
            pytest.skip("this machine has no AVX2")
    with Server(artel, models / SMOLLM2, "--local-workers", 1, "--context", 512) as server:
        alone = answers(server)
    with JoinedServer(artel, models / SMOLLM2, "--split", "17,4,9", "--context", 512,
                      workers=UNLIKE) as server:
        assert answers(server) == alone
    assert alone[0] != alone[1]
