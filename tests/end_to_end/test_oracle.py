# SPDX-License-Identifier: Apache-2.0
"""The oracle's own check, part by part, against the built program. A part whose command this build
lacks is left out by name; once the command exists, the part runs and must hold."""
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from conftest import leave_out


class Part(NamedTuple):
    name: str
    commands: set    # what `artel --help` must list before the part can run
    arguments: list
    needs_models: bool = False
    seconds: int = 900


# ARTEL_ORACLE_FULL=1 also cuts the real models over 1 and 3 workers, which takes long.
REAL_WORKERS = ["--workers", "1,3"] if os.environ.get("ARTEL_ORACLE_FULL") == "1" else []
FORMATS = "^(Q4_0|Q8_0|Q4_K_M|Q5_K_M|Q6_K)$"
TINY = ("llama", "llama_rope3", "gemma3", "qwen2", "qwen3", "gemma2", "phi3", "olmo2", "falcon",
        "qwen3moe", "gpt_oss", "glm4moe", "deepseek2")
PARTS = [
    Part("badgguf", {"run"}, ["badgguf"], seconds=300),
    Part("templates", {"render"}, ["templates"], seconds=600),
    Part("tok-smollm2", {"tokenize"}, ["--only", "^smollm2$", "tok"], needs_models=True),
    Part("tok-gemma3", {"tokenize"}, ["--only", "^gemma3$", "tok"], needs_models=True),
    *[Part(f"tok-{n}", {"tokenize"}, ["--only", f"^{n}$", "tok"])
      for n in ("llama-spm", "llama-bpe", "qwen2", "gpt-2", "deepseek-coder")],
    *[Part(f"tiny-{n}", {"eval"}, ["--only", f"^{n}$", "--workers", "1,3", "tiny"])
      for n in TINY],
    Part("tinyq-llama", {"eval"},
         ["--only", "^llama$", "--formats", FORMATS, "--workers", "1,3", "tinyq"]),
    Part("real-smollm2", {"eval"}, ["--only", "^smollm2$", *REAL_WORKERS, "real"],
         needs_models=True, seconds=3600),
    Part("real-gemma3", {"eval"}, ["--only", "^gemma3", *REAL_WORKERS, "real"],
         needs_models=True, seconds=3600),
]
SLOW = ("real", "tiny")


@pytest.mark.parametrize("part", [
    pytest.param(p, id=p.name, marks=[pytest.mark.slow] if p.name.startswith(SLOW) else [])
    for p in PARTS])
def test_part_holds(part, oracle, artel, commands, request):
    absent = part.commands - commands
    if absent:
        leave_out(f"the oracle's {part.name}: artel {', '.join(sorted(absent))} is not built yet")
    command = [sys.executable, str(oracle / "check.py"), "--artel", str(artel)]
    if part.needs_models:
        command += ["--models", str(request.getfixturevalue("models"))]
    done = subprocess.run(command + part.arguments, capture_output=True, encoding="utf-8",
                          errors="replace", stdin=subprocess.DEVNULL, timeout=part.seconds)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-2000:]}"
    # "N of N hold" with N > 0: a filter that matches nothing would hold, too.
    held = [line for line in done.stdout.splitlines() if line.endswith(" hold") and ":" in line]
    assert held and not held[0].split(":")[1].strip().startswith("0 of 0"), done.stdout
