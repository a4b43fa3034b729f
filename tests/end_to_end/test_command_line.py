# SPDX-License-Identifier: Apache-2.0
"""What every command keeps: exit 2 for wrong usage, 1 for a refused input, errors on stderr."""
import pytest

from conftest import leave_out


def test_version(run_artel):
    done = run_artel("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("artel 0.")


@pytest.mark.parametrize("arguments", [
    [], ["no-such-command"], ["inspect"], ["inspect", "--no-such-flag"],
    ["--log-level", "loud", "inspect", "x.gguf"]], ids=lambda a: " ".join(a) or "nothing")
def test_wrong_usage_ends_with_2_and_says_why(run_artel, arguments):
    done = run_artel(*arguments)
    assert done.returncode == 2
    assert done.stderr.strip() and not done.stdout


@pytest.mark.parametrize("command", ["inspect", "tokenize", "detokenize", "run", "eval", "plan",
                                     "serve", "bench"])
def test_a_missing_model_file_is_named(run_artel, commands, command, tmp_path):
    if command not in commands:
        leave_out(f"artel {command} of a missing file: not built yet")
    model = tmp_path / "no-such-file.gguf"
    ids = tmp_path / "ids.json"
    ids.write_text("[1]")
    rest = {"inspect": [model], "tokenize": ["-m", model, "text"],
            "detokenize": ["-m", model, ids], "run": ["-m", model, "-n", "1", "text"],
            "eval": ["-m", model, "--tokens", ids, "--logits", tmp_path / "out.f32"]}
    done = run_artel(command, *rest.get(command, ["-m", model]))
    assert done.returncode == 1, done.stderr
    assert "no-such-file.gguf" in done.stderr
