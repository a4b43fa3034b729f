#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The demo behind scripts/demo: one small model, three worker processes, one streamed answer.

usage: demo.py [--keep]

Each stage is a command that a person could type; it is printed before it runs. A stage whose
command this build lacks is named at the end, so the demo shows as much as there is. The server is
stopped whatever happens, and the demo fails if a process of it is left (--keep leaves it running).
"""
import argparse
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import fetch_models

ROOT = Path(__file__).resolve().parent.parent
ARTEL = ROOT / "build" / "release" / "artel"
QUESTION = "What is the capital of France?"
WORKERS = 3
READY_SECONDS = 120
ANSWER_SECONDS = 180
STOP_SECONDS = 20
LEAVE_SECONDS = 5  # for workers, once the server has ended
MARK = "ARTEL_DEMO_RUN"  # in the environment of all that this demo starts, to find what is left


class DemoFailed(Exception):
    pass


def show(command):
    print("\n$ " + " ".join(shlex.quote(str(c).replace(f"{ROOT}/", "")) for c in command),
          flush=True)


def output_of(*command, timeout=ANSWER_SECONDS):
    """Runs a command of the demo and returns its stdout; fails the demo if the command fails."""
    show(command)
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, timeout=timeout,
                          stdout=subprocess.PIPE, encoding="utf-8", errors="replace", cwd=ROOT)
    if done.returncode != 0:
        raise DemoFailed(f"exit {done.returncode} from: {' '.join(map(str, command))}")
    return done.stdout


def commands_of_this_build():
    """The names of the commands that `artel --help` lists."""
    text = subprocess.run([ARTEL, "--help"], capture_output=True, encoding="utf-8",
                          timeout=30).stdout
    lines = text.partition("Subcommands:")[2].splitlines()
    return {line.split()[0] for line in lines if line.startswith("  ") and line.strip()}


def print_head(text, lines):
    shown = text.splitlines()
    print("\n".join(line[:160] for line in shown[:lines]))
    if len(shown) > lines:
        print(f"... ({len(shown) - lines} more lines)")


def show_file(model):
    print_head(output_of(ARTEL, "inspect", model), 40)


def show_tokens(model):
    text = output_of(ARTEL, "tokenize", "-m", model, QUESTION)
    print_head(text, 3)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as ids:
        ids.write(text)
        ids.flush()
        back = output_of(ARTEL, "detokenize", "-m", model, ids.name)
    print_head(back, 3)
    if QUESTION not in back:
        raise DemoFailed(f"the tokens of {QUESTION!r} came back as {back!r}")


def show_run(model):
    text = output_of(ARTEL, "run", "-m", model, "-n", 24, "--temperature", 0,
                     QUESTION + " Answer in one short sentence.")
    print_head(text, 6)
    expect_paris(text)


def show_plan(model):
    print_head(output_of(ARTEL, "plan", "-m", model, "--local-workers", WORKERS), 30)


def expect_paris(text):
    if "Paris" not in text:
        raise DemoFailed(f"asked {QUESTION!r}; the answer does not say Paris: {text!r}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def http_get(url, timeout=5):
    """(status, body) of a GET by curl; status 0 if nothing answers."""
    done = subprocess.run(["curl", "-s", "-m", str(timeout), "-w", "\n%{http_code}", url],
                          capture_output=True, encoding="utf-8", errors="replace",
                          timeout=timeout + 5)
    body, _, status = done.stdout.rpartition("\n")
    return int(status or 0), body


class Server:
    """`artel serve` with its workers, in a state folder of its own."""

    def __init__(self, model):
        self.mark = uuid.uuid4().hex
        self.state = tempfile.mkdtemp(prefix="artel-demo-")
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = Path(self.state, "server.log")
        command = [ARTEL, "serve", "-m", model, "--local-workers", str(WORKERS), "--listen",
                   self.url.removeprefix("http://"), "--state-dir", Path(self.state, "state")]
        show(command)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, cwd=ROOT,
                                            start_new_session=True,
                                            env={**os.environ, MARK: self.mark})

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        status, body = 0, ""
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise DemoFailed(f"artel serve ended with {self.process.returncode}")
            status, body = http_get(self.url + "/health")
            if status == 200:
                return
            time.sleep(0.2)
        raise DemoFailed(f"not ready after {READY_SECONDS} s; /health says {status} {body[:300]}")

    def processes(self):
        """Process ids that carry this demo's mark in their environment."""
        found = []
        wanted = f"{MARK}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass  # ended meanwhile, or another user's
        return found

    def stop(self):
        """Ends the server and says whether all of it went by itself."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"demo: the server did not stop within {STOP_SECONDS} s of SIGTERM")
        deadline = time.monotonic() + LEAVE_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(STOP_SECONDS)
        if left:
            raise DemoFailed(f"processes {left} were left running and had to be killed")
        print(f"server stopped with exit status {self.process.returncode}; nothing is left running")

    def remove_state(self):
        subprocess.run(["rm", "-rf", "--", self.state], check=False)

    def print_log(self):
        print("demo: the last lines of the server's log:", file=sys.stderr)
        print("\n".join(self.log.read_text("utf-8", "replace").splitlines()[-30:]), file=sys.stderr)


def chat_command(url):
    body = {"model": "default", "stream": True, "max_tokens": 48, "temperature": 0,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "system", "content": "You answer in one short sentence."},
                         {"role": "user", "content": QUESTION}]}
    models = json.loads(http_get(url + "/v1/models")[1] or "{}").get("data", [])
    if models:
        body["model"] = models[0]["id"]
    return ["curl", "-sN", "-m", str(ANSWER_SECONDS), f"{url}/v1/chat/completions",
            "-H", "Content-Type: application/json", "-d", json.dumps(body)]


class Answer:
    """One streamed answer: its text, tokens, and seconds to the first piece and to the end."""

    def __init__(self):
        self.started = time.monotonic()
        self.text, self.tokens, self.first, self.seconds, self.is_done = "", 0, None, 0, False

    def take(self, line):
        """Reads one line of the stream and shows what it adds."""
        if line == "data: [DONE]":
            self.is_done = True
        elif line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            if "error" in event:
                raise DemoFailed(f"the server answered {event['error']}")
            self.tokens = (event.get("usage") or {}).get("completion_tokens", self.tokens)
            for choice in event.get("choices", []):
                piece = choice.get("delta", {}).get("content") or ""
                if piece and self.first is None:
                    self.first = time.monotonic() - self.started
                self.text += piece
                print(piece, end="", flush=True)
        elif line and not line.startswith(":"):
            raise DemoFailed(f"not a server-sent event: {line[:300]}")


def ask(url):
    """Streams one answer to the screen by curl."""
    command = chat_command(url)
    show(command)
    answer = Answer()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as curl:
        try:
            for raw in curl.stdout:
                answer.take(raw.decode("utf-8", "replace").strip())
            status = curl.wait(ANSWER_SECONDS)
        finally:
            curl.kill()
    answer.seconds = time.monotonic() - answer.started
    print()
    if status != 0 or not answer.is_done or answer.first is None:
        raise DemoFailed(f"the stream ended early (curl {status}, [DONE] seen: {answer.is_done})")
    return answer


def print_cluster(url, commands, model):
    """Who holds which layers, as the running server says it, else as the planner does."""
    status, body = http_get(url + "/v1/cluster")
    if status == 200:
        print(f"\n$ curl {url}/v1/cluster")
        print_head(json.dumps(json.loads(body), indent=2), 60)
    elif "plan" in commands:
        show_plan(model)
    else:
        print("no plan to show: this build has neither `artel plan` nor GET /v1/cluster")


def main_job(model, commands, keep):
    server = Server(model)
    kept = False
    try:
        server.wait_until_ready()
        print(f"{len(server.processes()) - 1} worker processes are up")
        answer = ask(server.url)
        expect_paris(answer.text)
        print_cluster(server.url, commands, model)
        rate = (answer.tokens - 1) / max(answer.seconds - answer.first, 1e-6)
        print(f"\n{answer.tokens} tokens in {answer.seconds:.2f} s, the first after "
              f"{answer.first:.2f} s: {rate:.1f} tokens a second after the first")
        kept = keep
    except BaseException:
        server.print_log()
        raise
    finally:
        if kept:
            print(f"\nThe server goes on at {server.url} (log: {server.log}). To stop it:\n"
                  f"    kill {server.process.pid} && rm -r {server.state}")
        else:
            try:
                server.stop()
            finally:
                server.remove_state()


def demo(keep):
    model = fetch_models.fetch("smollm2")
    commands = commands_of_this_build()
    missing = []

    def stage(needs, action):
        absent = [n for n in needs if n not in commands]
        if absent:
            missing.extend(n for n in absent if n not in missing)
        else:
            action()

    stage(["inspect"], lambda: show_file(model))
    stage(["tokenize", "detokenize"], lambda: show_tokens(model))
    stage(["run"], lambda: show_run(model))
    stage(["serve", "worker"], lambda: main_job(model, commands, keep))
    if missing:
        print("\nNot built yet, so not shown: " + ", ".join(f"artel {n}" for n in missing))
        return
    print("\nThe main job works: one model, three workers, one answer over the OpenAI API.")


def end_on_signal(number, _frame):
    raise KeyboardInterrupt(f"signal {number}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the server running")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, end_on_signal)
    try:
        demo(args.keep)
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130
    except (DemoFailed, fetch_models.FetchError, OSError, ValueError,
            subprocess.TimeoutExpired) as error:
        print(f"\ndemo failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
