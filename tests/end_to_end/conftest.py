# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the built program, the oracle's folder and the real models.

Environment: ARTEL_BINARY (default build/release/artel), ARTEL_ORACLE (default ../shared/oracle),
ARTEL_MODELS (default build/models, filled by tools/fetch_models.py). Relative paths start at the
repository's root. What is left out, and why, is printed at the end of the run.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
left_out = []  # reasons, printed by pytest_terminal_summary


def path_from(variable, default):
    return (ROOT / os.environ.get(variable, default)).resolve()


def leave_out(reason):
    """Skips the calling test, and says so at the end of the run."""
    if reason not in left_out:
        left_out.append(reason)
    pytest.skip(reason)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: minutes; scripts/test --fast leaves it out")


def pytest_terminal_summary(terminalreporter):
    for reason in left_out:
        terminalreporter.write_line(f"LEFT OUT: {reason}")


@pytest.fixture(scope="session")
def artel():
    path = path_from("ARTEL_BINARY", "build/release/artel")
    if not path.exists():
        pytest.fail(f"{path} is not built: run scripts/test, or set ARTEL_BINARY", pytrace=False)
    return path


@pytest.fixture(scope="session")
def run_artel(artel):
    """run_artel("tokenize", "-m", ...) -> CompletedProcess with text output; 60 s at most."""
    def run(*arguments, timeout=60, stdin=None, check=False):
        return subprocess.run([str(artel), *map(str, arguments)], capture_output=True,
                              encoding="utf-8", errors="replace", input=stdin or "",
                              timeout=timeout, check=check)
    return run


@pytest.fixture(scope="session")
def commands(run_artel):
    """The names of the commands that `artel --help` lists."""
    lines = run_artel("--help").stdout.partition("Subcommands:")[2].splitlines()
    return {line.split()[0] for line in lines if line.startswith("  ") and line.strip()}


@pytest.fixture(scope="session")
def oracle():
    path = path_from("ARTEL_ORACLE", "../shared/oracle")
    if not (path / "check.py").exists():
        leave_out(f"the oracle's parts: no check.py in {path} (set ARTEL_ORACLE)")
    return path


@pytest.fixture(scope="session")
def models():
    """The folder with both real models; downloads and checks them on the first use."""
    if "ARTEL_MODELS" in os.environ:
        return path_from("ARTEL_MODELS", "")
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "fetch_models.py")],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=1800)
    assert done.returncode == 0, "tools/fetch_models.py failed; its message is above"
    return ROOT / "build" / "models"
