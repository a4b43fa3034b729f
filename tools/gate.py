#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The one gate: what decides whether a change may land. CI runs exactly this, through scripts/test.

usage: gate.py [--fast] [--debug] [--only STAGE[,STAGE...]] [--list]

  --fast    leaves out the sanitizers, the fuzzers and the slow end-to-end tests
  --debug   runs only the sanitizer stages (address and undefined behaviour, then threads)
  --only    runs the named stages in the order of the list
  --list    prints the stages

Stops at the first stage that fails, with its exit status. What a stage leaves out, it says. The
output ends with the summary of the last test program, so nothing is printed after a good run.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "build" / "release"
VENV_PYTHON = ROOT / "build" / "venv" / "bin" / "python"
# Folders that read bytes which artel did not write: their tests run under ASan and UBSan.
PARSER_FOLDERS = ["base", "gguf", "quant", "text", "protocol", "net", "api"]
# Folders with threads or sockets: their tests run under TSan.
THREAD_FOLDERS = ["base", "net", "api"]
FUZZ_SECONDS = int(os.environ.get("ARTEL_FUZZ_SECONDS", "15"))  # each target
STAGE_TIMEOUT_SECONDS = 3600


class StageFailed(Exception):
    def __init__(self, status, command):
        super().__init__(" ".join(map(str, command)))
        self.status = status


def run(*command, env=None):
    print("+ " + " ".join(str(c).replace(f"{ROOT}/", "") for c in command), flush=True)
    try:
        done = subprocess.run([str(c) for c in command], cwd=ROOT, stdin=subprocess.DEVNULL,
                              timeout=STAGE_TIMEOUT_SECONDS, env={**os.environ, **(env or {})})
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"gate: {error}", file=sys.stderr)
        raise StageFailed(1, command) from error
    if done.returncode != 0:
        raise StageFailed(done.returncode if done.returncode > 0 else 1, command)


def run_side_by_side(commands, env=None):
    """As many of the programs at once as there are cores; each one's output in one piece."""
    def one(command):
        text = " ".join(str(c).replace(f"{ROOT}/", "") for c in command)
        try:
            done = subprocess.run([str(c) for c in command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=STAGE_TIMEOUT_SECONDS,
                                  env={**os.environ, **(env or {})})
            print(f"+ {text}\n{done.stdout}", end="", flush=True)
            return command, done.returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"+ {text}\ngate: {error}", flush=True)
            return command, 1

    with concurrent.futures.ThreadPoolExecutor(jobs()) as pool:
        results = list(pool.map(one, commands))
    for command, status in results:
        if status != 0:
            raise StageFailed(status if status > 0 else 1, command)


def jobs():
    """One compiler a core, but no more than one for each 2 GiB of memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // (2 << 30)))


def folders_with_tests(folders):
    return [f for f in folders if any((ROOT / "src" / f).rglob("*_test.cpp"))]


def configure():
    # GCC's warnings are errors here, Clang's in the debug preset.
    run("cmake", "--preset", "release", "-DARTEL_DEVELOPER=ON")


def tidy():
    run("/usr/bin/python3", "tools/tidy.py", "--build", RELEASE)


def artel():
    run("ninja", "-C", RELEASE, f"-j{jobs()}", "artel")


def build():
    run("ninja", "-C", RELEASE, f"-j{jobs()}")


def unit():
    run("ctest", "--test-dir", RELEASE, "--output-on-failure", "--no-tests=error",
        "--progress", f"-j{jobs()}")


def build_preset(preset, targets):
    run("cmake", "--preset", preset)
    run("ninja", "-C", f"build/{preset}", f"-j{jobs()}", *targets)


def sanitized(preset, folders, env):
    """Builds the tests of some folders with a sanitizer preset and runs them."""
    names = [f"{f}_test" for f in folders_with_tests(folders)]
    left_out = sorted(set(folders) - set(folders_with_tests(folders)))
    if left_out:
        print(f"{preset}: no tests yet in {', '.join(left_out)}")
    build_preset(preset, names)
    run_side_by_side([[f"build/{preset}/{name}", "--gtest_brief=1"] for name in names], env)


def debug():
    sanitized("debug", PARSER_FOLDERS, {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1"})


def tsan():
    suppressions = ROOT / "tests" / "tsan.supp"
    sanitized("tsan", THREAD_FOLDERS, {
        "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={suppressions}"})


def fuzz():
    """Each tests/fuzz/fuzz_X.cpp, a short time, from the seeds in tests/fuzz/corpus/X."""
    names = sorted(p.stem for p in (ROOT / "tests" / "fuzz").glob("fuzz_*.cpp"))
    if not names:
        print("fuzz: no targets yet in tests/fuzz")
        return
    build_preset("debug", names)
    commands = []
    for name in names:
        grown = ROOT / "build" / "corpus" / name
        grown.mkdir(parents=True, exist_ok=True)
        seeds = ROOT / "tests" / "fuzz" / "corpus" / name.removeprefix("fuzz_")
        commands.append([f"build/debug/tests/fuzz/{name}", f"-max_total_time={FUZZ_SECONDS}",
                         "-timeout=5", "-rss_limit_mb=1024", "-print_final_stats=1",
                         f"-artifact_prefix=build/{name}-", grown,
                         *([seeds] if seeds.is_dir() else [])])
    run_side_by_side(commands)


def end_to_end(*selection):
    run(VENV_PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/end_to_end", *selection,
        env={"PYTHONDONTWRITEBYTECODE": "1"})


def end_to_end_fast():
    print("end_to_end_fast: the tests marked slow are left out")
    end_to_end("-m", "not slow")


STAGES = {f.__name__: f for f in (configure, tidy, artel, build, debug, tsan, fuzz, unit,
                                  end_to_end_fast, end_to_end)}
FULL = ["configure", "tidy", "build", "debug", "tsan", "fuzz", "unit", "end_to_end"]
FAST = ["configure", "tidy", "build", "unit", "end_to_end_fast"]
DEBUG = ["debug", "tsan"]


def run_stages(names):
    times = []
    for name in names:
        if name == names[-1] and times:
            # Before the last stage, since the output is to end with a test summary.
            print("gate: " + ", ".join(f"{n} {s:.0f} s" for n, s in times), flush=True)
        print(f"== {name} ==", flush=True)
        started = time.monotonic()
        try:
            STAGES[name]()
        except StageFailed as failure:
            print(f"gate: stage {name} failed (exit {failure.status}): {failure}", file=sys.stderr)
            return failure.status
        times.append((name, time.monotonic() - started))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--fast", action="store_true")
    which.add_argument("--debug", action="store_true")
    which.add_argument("--only", type=lambda s: s.split(","))
    which.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(STAGES))
        return 0
    names = args.only or (FAST if args.fast else DEBUG if args.debug else FULL)
    unknown = [n for n in names if n not in STAGES]
    if unknown:
        parser.error(f"no stage named {unknown[0]}; --list prints them")
    return run_stages(names)


if __name__ == "__main__":
    sys.exit(main())
