# SPDX-License-Identifier: Apache-2.0
"""What every command keeps: exit 2 for wrong usage, 1 for a refused input, errors on stderr."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import leave_out


def test_version(run_artel):
    done = run_artel("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("artel 0.")


@pytest.mark.parametrize("arguments", [
    [], ["no-such-command"], ["inspect"], ["inspect", "--no-such-flag"],
    ["--log-level", "loud", "inspect", "x.gguf"], ["status", "--state-dir", ""],
    ["worker", "--name", ""]], ids=lambda a: " ".join(a) or "nothing")
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


@pytest.fixture(scope="module")
def small_model(models):
    return next(models.glob("SmolLM2*.gguf"))


@pytest.mark.parametrize("arguments, code, named", [
    (["no-such-command"], 2, "no-such-command"),
    (["worker", "--threads", "0"], 2, "--threads"),
    (["worker", "--memory", "0", "--join", "key"], 1, "--memory 0"),
    (["worker", "--join", "@/dev/null"], 1, "reading /dev/null"),
    (["run", "-m", "x.gguf", "-n", "0", "hi"], 2, "1 to 1073741824"),
    (["run", "-m", "x.gguf", "--seed", "-1", "hi"], 2, "--seed")], ids=lambda a: str(a)[:30])
def test_an_impossible_value_is_named(run_artel, arguments, code, named):
    done = run_artel(*arguments)
    assert done.returncode == code, done.stderr
    assert named in done.stderr


def test_a_pipe_as_configuration_is_refused(run_artel, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = run_artel("plan", "--config", tmp_path / "pipe", timeout=20)
    assert done.returncode == 2
    assert "not a regular file" in done.stderr


def test_a_user_without_a_home_must_say_where_keys_go(artel):
    # A user id that no passwd entry names; it may not read what lies in root's home.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        program = shutil.copy(artel, folder)
        done = subprocess.run([program, "status"], capture_output=True, text=True, timeout=20,
                              env={"PATH": os.environ["PATH"]}, cwd=folder,
                              user=54321 if os.geteuid() == 0 else None)
    assert done.returncode == 1
    assert ("--state-dir" if os.geteuid() == 0 else "no artel serve runs") in done.stderr


def test_plan_places_every_layer_once(run_artel, small_model):
    done = run_artel("plan", "-m", small_model, "--local-workers", "3", "--context", "512",
                     "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["context"] == 512 and plan["decode_tokens_per_second"] > 0
    stages = [worker for worker in plan["workers"] if worker["layers"]]
    next_layer = 0
    for stage in stages:
        assert stage["first_layer"] == next_layer
        next_layer += stage["layers"]
    assert next_layer == 30
    assert [worker["input"] for worker in stages].count(True) == 1
    assert [worker["output"] for worker in stages].count(True) == 1


def test_plan_refuses_with_what_is_missing(run_artel, small_model, tmp_path):
    cluster = tmp_path / "cluster.toml"
    cluster.write_text('[[worker]]\nname = "tiny"\nmemory = "8MiB"\n')
    done = run_artel("plan", "-m", small_model, "--cluster", cluster)
    assert done.returncode == 1 and not done.stdout
    assert "does not fit" in done.stderr and "one more machine with" in done.stderr


@pytest.mark.parametrize("line, named", [
    ("memory = -1", "cluster.toml:3: memory"), ("memory = \"much\"", "cluster.toml:3: memory"),
    ("memroy = 1", "cluster.toml:3: memroy"), ("", "memory: is missing"),
    ("memory = ", "cluster.toml:3")])
def test_plan_names_what_is_wrong_in_a_cluster_file(run_artel, small_model, tmp_path, line, named):
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(f'[[worker]]\nname = "a"\n{line}\n')
    done = run_artel("plan", "-m", small_model, "--cluster", cluster)
    assert done.returncode == 1 and named in done.stderr, done.stderr


def test_eval_over_worker_processes_gives_the_same_bytes(run_artel, small_model, tmp_path):
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps([(7919 * i + 11) % 49000 for i in range(100)]))

    def logits(*options):
        out = tmp_path / "out.f32"
        done = run_artel("eval", "-m", small_model, "--tokens", ids, "--logits", out, *options)
        assert done.returncode == 0, done.stderr
        return out.read_bytes()

    expected = logits()
    assert len(expected) == 100 * 49152 * 4
    for workers, chunk in ((1, 64), (2, 7), (3, 64)):
        assert logits("--local-workers", workers, "--chunk", chunk) == expected


def test_output_never_replaces_what_is_no_file(run_artel, small_model, tmp_path):
    ids = tmp_path / "ids.json"
    ids.write_text("[1]")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = run_artel("eval", "-m", small_model, "--tokens", ids, "--logits", pipe)
    assert done.returncode == 1 and "not a regular file" in done.stderr
    done = run_artel("serve", "-m", small_model, "--expect-workers", "1", "--listen",
                     "127.0.0.1:0", "--state-dir", tmp_path / "state", "--join-key-file", pipe)
    assert done.returncode == 1 and "not a regular file" in done.stderr
    assert pipe.is_fifo()


def test_a_split_that_is_not_the_models_is_refused_at_once(run_artel, small_model, tmp_path):
    ids = tmp_path / "ids.json"
    ids.write_text("[1]")
    done = run_artel("eval", "-m", small_model, "--tokens", ids, "--logits", tmp_path / "out.f32",
                     "--split", "10,10")
    assert done.returncode == 1 and "20 layers in all, the model 30" in done.stderr
    assert not (tmp_path / "out.f32").exists()


def test_bench_measures_each_context_and_concurrency(run_artel, small_model):
    done = run_artel("bench", "-m", small_model, "--prompt", "8", "--generate", "4", "--contexts",
                     "0,16", "--concurrency", "1,2", "--runs", "1", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [(entry["context"], entry["concurrency"]) for entry in report["results"]] == [
        (0, 1), (0, 2), (16, 1), (16, 2)]
    for entry in report["results"]:
        assert entry["prefill_tokens_per_second"] > 0 and entry["decode_tokens_per_second"] > 0
        assert entry["gb_per_second"] > 0 and entry["bandwidth_share"] > 0


def test_bench_refuses_a_context_beyond_the_models(run_artel, small_model):
    done = run_artel("bench", "-m", small_model, "--contexts", "9000")
    assert done.returncode == 1
    assert "9640" in done.stderr and "8192" in done.stderr


def test_options_come_from_a_file_too(run_artel, tmp_path):
    config = tmp_path / "artel.toml"
    config.write_text('[plan]\nmodel = "/not/there.gguf"\nlocal-workers = 2\n'
                      '[worker]\nname = "another command\'s"\n')
    done = run_artel("plan", "--config", config)
    assert done.returncode == 1
    assert "/not/there.gguf does not exist" in done.stderr
    config.write_text('[plan]\nmodell = "/not/there.gguf"\n')
    done = run_artel("plan", "--config", config)
    assert done.returncode == 2
    assert "plan.modell" in done.stderr
