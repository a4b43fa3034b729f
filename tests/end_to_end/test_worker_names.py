# SPDX-License-Identifier: Apache-2.0
"""Two workers of one name: the second is told so, the first goes on undisturbed."""
import subprocess
import time
from pathlib import Path

from joined import JoinedServer
from serving import FRANCE

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"


def worker(artel, server, name, state, key=""):
    """Starts a worker that is no part of the plan; its log is beside its state dir."""
    log = Path(server.directory.name, f"{state}.log")
    with open(log, "wb") as output:
        return log, subprocess.Popen(
            [str(artel), "worker", "--name", name, "--state-dir",
             str(Path(server.directory.name, state)), *(["--join", key] if key else [])],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output)


def wait_for_text(log, text, patience=20):
    end = time.time() + patience
    while time.time() < end:
        if text in log.read_text(errors="replace"):
            return
        time.sleep(0.05)
    raise AssertionError(log.read_text(errors="replace"))


def answers(server):
    status, _, answer = server.post({"model": "test", "temperature": 0, "max_tokens": 16,
                                     "messages": FRANCE})
    return status == 200 and "Paris" in answer["choices"][0]["message"]["content"]


def test_each_worker_needs_a_name_and_a_state_dir_of_its_own(artel, run_artel, models):
    with JoinedServer(artel, models / SMOLLM2, "--context", "512",
                      workers=[([], None), ([], None)]) as server:
        server.wait_until_serving()
        state = Path(server.directory.name, "state")
        key = run_artel("key", "--state-dir", state).stdout.strip()
        log, rival = worker(artel, server, "joined-1", "rival", key)
        assert rival.wait(20) == 1
        assert "a worker of this name is connected" in log.read_text()
        log, rival = worker(artel, server, "joined-1", "joined-1")
        assert rival.wait(20) == 1
        assert "in use by another process" in log.read_text()
        # The refused one has not used the key up.
        log, spare = worker(artel, server, "spare", "spare", key)
        twin = None
        try:
            wait_for_text(log, "worker is up")
            # A machine that was copied with its certificate.
            subprocess.run(["cp", "-r", str(Path(server.directory.name, "spare")),
                            str(Path(server.directory.name, "twin"))], check=True)
            twin_log, twin = worker(artel, server, "spare", "twin")
            wait_for_text(twin_log, "another process named 'spare' is connected from")
            assert answers(server)
            assert twin.poll() is None and spare.poll() is None
        finally:
            for process in filter(None, (spare, twin)):
                process.kill()
                process.wait()
