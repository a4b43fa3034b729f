# SPDX-License-Identifier: Apache-2.0
"""A running `artel serve`, for tests: starts it on free ports, talks to it, stops it by its pid."""
import http.client
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

FRANCE = [{"role": "system", "content": "You answer in one short sentence."},
          {"role": "user", "content": "What is the capital of France?"}]


class Server:
    def __init__(self, artel, model, *options, environment=None):
        self.directory = tempfile.TemporaryDirectory(prefix="artel-test-")
        self.log = Path(self.directory.name, "log")
        self.output = Path(self.directory.name, "output")
        state = str(Path(self.directory.name, "state"))
        command = [str(artel), "serve", "-m", str(model), "--listen", "127.0.0.1:0",
                   "--alias", "test", "--state-dir", state, *map(str, options)]
        with open(self.log, "wb") as log, open(self.output, "wb") as output:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=log, env={**os.environ, **(environment or {})})
        self.port = self.wait_for_port()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def wait_for_port(self, patience=20):
        end = time.time() + patience
        while time.time() < end and self.process.poll() is None:
            for line in self.log.read_text(errors="replace").splitlines():
                if "listening" in line and "api=" in line:
                    return int(line.rsplit(":", 1)[1])
            time.sleep(0.02)
        raise AssertionError(f"no API address within {patience} s:\n"
                             f"{self.log.read_text(errors='replace')}")

    def wait_until_serving(self, patience=60):
        end = time.time() + patience
        while time.time() < end:
            if self.get("/health")[0] == 200:
                return self
            time.sleep(0.05)
        raise AssertionError(f"not serving within {patience} s: {self.get('/health')}\n"
                             f"{self.log.read_text(errors='replace')[-3000:]}")

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path):
        connection = self.connect(10)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")

    def post(self, body, path="/v1/chat/completions", timeout=120):
        connection = self.connect(timeout)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), json.loads(answer.read())

    def stream(self, body, timeout=120):
        """Yields the data of each event; the last may be "[DONE]"."""
        connection = self.connect(timeout)
        connection.request("POST", "/v1/chat/completions", json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            if line.startswith(b"data: "):
                yield line[6:].strip().decode()

    def worker_pids(self):
        """{name: pid} of the children, from their command lines."""
        pids = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parts = Path(entry, "cmdline").read_bytes().decode(errors="replace").split("\0")
                parent = int(Path(entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, ValueError):
                continue
            if parent == self.process.pid and "worker" in parts:
                pids[parts[parts.index("--name") + 1]] = int(entry.name)
        return pids

    def stop(self, patience=40):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("the server did not end after SIGTERM") from None
        self.directory.cleanup()


def content(event):
    """The text of a streamed chunk, "" where it has none."""
    choices = json.loads(event).get("choices") or [{}]
    return choices[0].get("delta", {}).get("content") or ""
