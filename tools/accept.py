#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what a capability must show before it counts as done, line by line, and prints a table.

usage: accept.py NAME [--only REGEX] [--list]

NAME: main_job (one model, three workers, an OpenAI API). product, breadth, pipe and survive are
added when those capabilities land; until then they end with exit status 2.
A line whose program or test is not there yet counts as not done, never as passed. Exit status 0
only if every chosen line passed. Run scripts/test first; some lines take minutes, some hours.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, NamedTuple

import fetch_models

ROOT = Path(__file__).resolve().parent.parent
ORACLE = (ROOT / os.environ.get("ARTEL_ORACLE", "../shared/oracle")).resolve()
ARTEL = ROOT / "build" / "release" / "artel"
DEBUG_ARTEL = ROOT / "build" / "debug" / "artel"
VENV_PYTHON = ROOT / "build" / "venv" / "bin" / "python"
END_TO_END = ROOT / "tests" / "end_to_end"
LATER = ("product", "breadth", "pipe", "survive")
TOKENS = 1200
CANARIES = ("skips-epoch-check", "frees-pages-twice", "loses-cancels", "forgets-resend",
            "counts-a-layer-twice")


class NotDone(Exception):
    """The line did not pass; the text says what fell short."""


class NotBuilt(NotDone):
    """What the line runs does not exist yet."""


class Line(NamedTuple):
    name: str
    text: str
    action: Callable  # returns a note for the table, or raises NotDone


def run(*command, seconds=3600, cwd=ROOT, env=None):
    """Runs a command, its output going to the screen; returns the seconds that it took."""
    print("+ " + " ".join(map(str, command)), flush=True)
    started = time.monotonic()
    try:
        done = subprocess.run([str(c) for c in command], cwd=cwd, stdin=subprocess.DEVNULL,
                              timeout=seconds, env={**os.environ, **(env or {})})
    except subprocess.TimeoutExpired as error:
        raise NotDone(f"still running after {seconds} s: {command[0]}") from error
    if done.returncode != 0:
        raise NotDone(f"exit {done.returncode}: {' '.join(map(str, command))[:120]}")
    return time.monotonic() - started


def need(path, what):
    if not Path(path).exists():
        raise NotBuilt(f"{what} is not there ({path})")
    return path


def artel_processes():
    names = subprocess.run(["pgrep", "-x", "artel"], capture_output=True, text=True).stdout
    return set(names.split())


def script_on_clean_clone(script, seconds):
    """A script on a fresh clone, twice; the first run within `seconds`, nothing left after both."""
    before = artel_processes()
    with tempfile.TemporaryDirectory(prefix="artel-accept-") as folder:
        run("git", "clone", "-q", ROOT, Path(folder, "artel"))
        times = [run(Path("scripts", script), cwd=Path(folder, "artel"), seconds=seconds,
                     env={"ARTEL_ORACLE": str(ORACLE)}) for _ in range(2)]
    if artel_processes() - before:
        raise NotDone(f"processes left running: {sorted(artel_processes() - before)}")
    return f"{times[0]:.0f} s, again {times[1]:.0f} s, as user id {os.geteuid()}"


def oracle(*arguments, artel=ARTEL, workers=True, seconds=4 * 3600):
    need(artel, "the program")
    need(ORACLE / "check.py", "the oracle")
    models = [fetch_models.fetch(name) for name in fetch_models.CATALOG]
    taken = run(VENV_PYTHON, ORACLE / "check.py", "--artel", artel, "--models", models[0].parent,
                *(["--workers", "1,3"] if workers else []), *arguments, seconds=seconds)
    return f"{taken:.0f} s"


def logits_digest(model, tokens, folder, arguments, isa):
    target = Path(folder, "logits.f32")
    run(ARTEL, "eval", "-m", model, "--tokens", tokens, "--logits", target, *arguments,
        env={"ARTEL_CPU_ISA": isa} if isa else None)
    digest = hashlib.sha256()
    with open(target, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def ways_to_run(layers):
    """(name, arguments of eval, forced instruction set): each alone changes one thing."""
    for workers in (2, 3, 5):
        yield f"{workers} workers", ["--local-workers", workers], None
    for first in range(layers + 1):
        yield f"split {first}", ["--local-workers", 2, "--split", f"{first},{layers - first}"], None
    for chunk in (1, 7, 64, 512):
        yield f"chunk {chunk}", ["--chunk", chunk], None
    for threads in (1, 2):
        yield f"{threads} threads", ["--threads", threads], None
    for isa in ("scalar", "avx2"):
        yield isa, [], isa


def same_bytes(name, golden, layers):
    """Logits of one real text, computed every way that must not matter, compared by their hash."""
    need(ARTEL, "the program")
    record = json.loads(need(ORACLE / "real" / golden / "perplexity.json", "the text").read_text())
    model = fetch_models.fetch(name)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        tokens = Path(folder, "tokens.json")
        tokens.write_text(json.dumps(record["perplexity"]["ids"][:TOKENS]))
        wanted = logits_digest(model, tokens, folder, [], None)
        differ, count = [], 0
        for way, arguments, isa in ways_to_run(layers):
            count += 1
            if logits_digest(model, tokens, folder, arguments, isa) != wanted:
                differ.append(way)
    if differ:
        raise NotDone(f"{len(differ)} of {count} ways differ: {', '.join(differ[:4])}")
    return f"{count} ways, one answer"


def bad_files_under_sanitizers():
    run("cmake", "--preset", "debug")
    run("ninja", "-C", DEBUG_ARTEL.parent, "artel")
    return oracle("badgguf", artel=DEBUG_ARTEL, workers=False)


def fuzz(seconds):
    if not list((ROOT / "tests" / "fuzz").glob("fuzz_*.cpp")):
        raise NotBuilt("tests/fuzz has no targets yet")
    run("/usr/bin/python3", "tools/gate.py", "--only", "fuzz", seconds=4 * 3600,
        env={"ARTEL_FUZZ_SECONDS": str(seconds)})
    return f"{seconds} s each"


def simulator(*arguments):
    swarm = need(ROOT / "build" / "release" / "tests" / "simulation" / "swarm", "the simulator")
    return f"{run(swarm, *arguments, seconds=4 * 3600):.0f} s"


def canaries():
    for canary in CANARIES:
        simulator("--count", 200, "--canary", canary)
    return f"{len(CANARIES)} canaries"


def end_to_end(*files, **environment):
    paths = [need(END_TO_END / file, "the test") for file in files]
    taken = run(VENV_PYTHON, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *paths,
                seconds=4 * 3600, env=environment)
    return f"{taken:.0f} s"


FORMATS = "^(Q4_0|Q8_0|Q4_K_M|Q5_K_M|Q6_K)$"
MAIN_JOB = [
    Line("demo", "a clean clone answers Paris in 12 minutes and leaves nothing running",
         lambda: script_on_clean_clone("demo", 12 * 60)),
    Line("test", "a clean clone passes its tests in 30 minutes",
         lambda: script_on_clean_clone("test", 30 * 60)),
    Line("oracle-tiny", "llama, llama_rope3, gemma3 give the golden logits, on 1 and 3 workers",
         lambda: oracle("--only", "^(llama|llama_rope3|gemma3)$", "tiny")),
    Line("oracle-tinyq", "five quantised formats stay as close as the best rival",
         lambda: oracle("--only", "^llama$", "--formats", FORMATS, "tinyq")),
    Line("oracle-real", "both real models, on 1 and 3 workers", lambda: oracle("real")),
    Line("oracle-tok", "both real tokenizers",
         lambda: oracle("--only", "^(smollm2|gemma3)$", "tok", workers=False)),
    Line("oracle-templates", "all chat templates", lambda: oracle("templates", workers=False)),
    Line("oracle-badgguf", "malformed files are refused", lambda: oracle("badgguf", workers=False)),
    Line("same-bytes-smollm2", "every split, chunk, thread count and instruction set, 1,200 tokens",
         lambda: same_bytes("smollm2", "smollm2", 30)),
    Line("same-bytes-gemma3", "the same with gemma3",
         lambda: same_bytes("gemma3", "gemma3-270m", 18)),
    Line("badgguf-sanitized", "malformed files under ASan and UBSan", bad_files_under_sanitizers),
    Line("fuzz", "ten minutes of fuzzing of each target find nothing", lambda: fuzz(600)),
    Line("simulator", "10,000 simulator seeds pass", lambda: simulator("--count", 10000)),
    Line("canaries", "each canary is caught within 200 seeds", canaries),
    Line("openai-client", "the openai client, 2 and 3 workers, 32 streams at once, unlike workers",
         lambda: end_to_end("test_openai_client.py", "test_unlike_workers.py")),
    Line("faults", "kill -9, SIGSTOP and a cut link, loading, prefilling and decoding, 10 of 10",
         lambda: end_to_end("test_faults.py", "test_fault_phases.py", ARTEL_FAULT_ROUNDS="10")),
    Line("garbage", "10,000 garbage, silent or half-open connections leave both ports serving",
         lambda: end_to_end("test_garbage.py", ARTEL_GARBAGE_COUNT="10000")),
]


def accept(lines):
    rows = []
    for line in lines:
        print(f"\n== {line.name}: {line.text}", flush=True)
        started = time.monotonic()
        try:
            result, note = "pass", line.action()
        except NotBuilt as error:
            result, note = "not built", str(error)
        except (NotDone, OSError, ValueError, KeyError, subprocess.SubprocessError,
                fetch_models.FetchError) as error:
            result, note = "FAIL", str(error)
        rows.append((line.name, result, time.monotonic() - started, note))
    columns = shutil.get_terminal_size((120, 24)).columns
    print(f"\n{'line':20} {'result':10} {'seconds':>8}  note")
    for name, result, seconds, note in rows:
        print(f"{name:20} {result:10} {seconds:8.1f}  {note}"[:columns])
    passed = sum(result == "pass" for _, result, _, _ in rows)
    print(f"{passed} of {len(rows)} lines pass")
    return 0 if rows and passed == len(rows) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--only", default="", help="regular expression on the lines' names")
    parser.add_argument("--list", action="store_true", help="print the lines")
    args = parser.parse_args()
    if args.name in LATER:
        print(f"accept: {args.name}: added when the capability lands", file=sys.stderr)
        return 2
    if args.name != "main_job":
        parser.error(f"no capability named {args.name}; there are main_job, {', '.join(LATER)}")
    lines = [line for line in MAIN_JOB if re.search(args.only, line.name)]
    if args.list:
        print("\n".join(f"{line.name:20} {line.text}" for line in lines))
        return 0
    return accept(lines)


if __name__ == "__main__":
    sys.exit(main())
