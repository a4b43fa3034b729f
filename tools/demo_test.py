#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/demo.py against a stand-in for the program: what it must show, refuse and stop."""
import contextlib
import io
import os
import stat
import tempfile
import unittest
from pathlib import Path

import demo

STAND_IN = r'''#!/usr/bin/python3
import json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
MODE = os.environ.get("STAND_IN", "")
PIECES = ["The capital is ", "Rome" if MODE == "wrong" else "Paris", "."]

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def answer(self, body):
        self.send_response(200); self.end_headers(); self.wfile.write(body.encode())
    def do_GET(self):
        if self.path == "/health": self.answer("{}")
        elif self.path == "/v1/models": self.answer('{"data": [{"id": "stand-in"}]}')
        else: self.send_error(404)
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked["model"] == "stand-in" and asked["stream"]
        self.send_response(200); self.end_headers()
        def event(value): self.wfile.write(f"data: {value}\n\n".encode())
        for piece in PIECES: event(json.dumps({"choices": [{"delta": {"content": piece}}]}))
        if MODE == "lost":
            return event(json.dumps({"error": {"message": "gone", "code": "worker_lost"}}))
        event(json.dumps({"choices": [], "usage": {"completion_tokens": 3}}))
        if MODE != "cut": event("[DONE]")

command = sys.argv[1]
if command == "--help":
    print("Subcommands:\n" + "".join(f"  {n}   text\n" for n in os.environ["HAS"].split()))
elif command == "inspect": print("a file")
elif command == "tokenize": print("[1]")
elif command == "detokenize": print("What is the capital of France?")
elif command == "run": print("Paris")
elif command == "serve":
    host, port = sys.argv[sys.argv.index("--listen") + 1].split(":")
    workers = [subprocess.Popen(["sleep", "100"]) for _ in range(3)]
    try:
        if MODE == "dies": sys.exit(1)
        import signal
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        HTTPServer((host, int(port)), Handler).serve_forever()
    finally:
        if MODE != "leaves":
            for w in workers: w.kill()
'''
ALL = "inspect tokenize detokenize run serve worker"


class DemoTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        program = Path(self.folder.name, "artel")
        program.write_text(STAND_IN, "utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.addCleanup(setattr, demo, "ARTEL", demo.ARTEL)
        self.addCleanup(setattr, demo.fetch_models, "fetch", demo.fetch_models.fetch)
        self.addCleanup(setattr, demo, "LEAVE_SECONDS", demo.LEAVE_SECONDS)
        demo.ARTEL = program
        demo.fetch_models.fetch = lambda name: Path(self.folder.name, f"{name}.gguf")

    def run_demo(self, mode="", has=ALL):
        os.environ.update(STAND_IN=mode, HAS=has)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            demo.demo(keep=False)
        return out.getvalue()

    def test_the_whole_job(self):
        text = self.run_demo()
        self.assertIn("3 worker processes are up", text)
        self.assertIn("The capital is Paris.", text)
        self.assertIn("3 tokens in", text)
        self.assertIn("nothing is left running", text)
        self.assertIn("The main job works", text)

    def test_a_missing_command_is_named(self):
        text = self.run_demo(has="inspect")
        self.assertIn("a file", text)
        self.assertIn("Not built yet, so not shown: artel tokenize, artel detokenize, artel run, "
                      "artel serve, artel worker", text)
        self.assertNotIn("main job works", text)

    def test_what_fails_the_demo(self):
        for mode, why in [("wrong", "does not say Paris"), ("cut", "ended early"),
                          ("lost", "worker_lost"), ("dies", "ended with 1")]:
            with self.subTest(mode), self.assertRaisesRegex(demo.DemoFailed, why):
                self.run_demo(mode)

    def test_a_process_left_behind_fails_and_is_killed(self):
        demo.LEAVE_SECONDS = 0.2
        with self.assertRaisesRegex(demo.DemoFailed, "left running"):
            self.run_demo("leaves")


if __name__ == "__main__":
    unittest.main()
