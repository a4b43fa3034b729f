# SPDX-License-Identifier: Apache-2.0
"""What cannot start says so and ends; what is stopped leaves nothing behind."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def small_model(models):
    return next(models.glob("SmolLM2*.gguf"))


# 8192 tokens of 1024 requests are 190 GB of keys and values.
@pytest.mark.parametrize("options, named", [
    (["--context", "8192", "--parallel", "1024"], ["does not fit", "would do"]),
    (["--context", "8192", "--parallel", "1024", "--split", "29,1"],
     ["local-1", "layers 0 to 28", "are missing"]),
    (["--split", "3,4"], ["7 layers in all, the model 30"]),
    (["--context", "999999"], ["999999", "8192"]),
    (["--expect-workers", "1", "--worker-listen", "0.0.0.0:0"],
     ["0.0.0.0:0", "join key"]),
    (["--device", "abacus"], ["abacus", "cpu"])], ids=lambda o: " ".join(o)[:40])
def test_serve_refuses_what_can_never_work(run_artel, small_model, tmp_path, options, named):
    done = run_artel("serve", "-m", small_model, "--listen", "127.0.0.1:0", "--state-dir",
                     tmp_path / "state", *options, timeout=300)
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    for word in named:
        assert word in last, done.stderr


def children_of(pid):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = int(Path(entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == pid:
            found.append(int(entry.name))
    return found


def wait_for(condition, patience=120):
    end = time.time() + patience
    while time.time() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("command", [
    ["bench", "--prompt", "512", "--generate", "512", "--runs", "1000"],
    ["run", "--raw", "-n", "7000", "--ignore-eos", "Once upon a time"]], ids=lambda c: c[0])
def test_a_stopped_command_leaves_no_folder_and_no_child(artel, small_model, tmp_path, command,
                                                         number):
    process = subprocess.Popen(
        [str(artel), command[0], "-m", str(small_model), "--local-workers", "2", *command[1:]],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        assert wait_for(lambda: len(children_of(process.pid)) == 2 and list(tmp_path.iterdir()))
        children = children_of(process.pid)
        process.send_signal(number)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert b"stopped by a signal" in errors
    assert list(tmp_path.iterdir()) == []
    assert not any(Path("/proc", str(pid)).exists() for pid in children)
