# SPDX-License-Identifier: Apache-2.0
"""artel inspect: text, JSON, a file of which only the index is there, and --dump. The model is kept
in tests/data/gguf: one layer, F16 and Q8_0."""
import json
import struct

import pytest
from conftest import ROOT

MODEL = ROOT / "tests/data/gguf/ok_base.gguf"


@pytest.fixture(scope="module")
def report(run_artel):
    return json.loads(run_artel("inspect", MODEL, "--json", check=True).stdout)


def tensors_of(report):
    return {t["name"]: t for layer in report["layers"] for t in layer["tensors"]}


def test_json_names_what_the_file_holds(report):
    assert report["architecture"] == "llama"
    assert report["unsupported"] == []
    assert report["missing_bytes"] == 0
    assert [layer["name"] for layer in report["layers"]] == ["outside layers", "layer 0"]
    assert report["metadata"]["llama.block_count"] == {"type": "u32", "value": 1}
    tokens = report["metadata"]["tokenizer.ggml.tokens"]
    assert tokens["count"] == 260 and len(tokens["first"]) == 8
    assert tensors_of(report)["token_embd.weight"]["dims"] == [32, 260]
    assert sum(f["bytes"] for f in report["formats"]) == report["tensor_bytes"]
    assert sum(layer["bytes"] for layer in report["layers"]) == report["tensor_bytes"]
    # Two key-value heads of 8, keys and values, two bytes each.
    assert report["state"]["groups"][0]["bytes_per_token"] == 2 * 8 * 2 * 2


def test_text_shows_the_same(run_artel, report):
    text = run_artel("inspect", MODEL, check=True).stdout
    for name in tensors_of(report):
        assert name in text
    assert "unsupported: nothing" in text


def test_the_index_alone_is_enough(run_artel, report, tmp_path):
    part = tmp_path / "index.gguf"
    part.write_bytes(MODEL.read_bytes()[:report["parts"][0]["index_bytes"]])
    short = json.loads(run_artel("inspect", part, "--json", check=True).stdout)
    assert short["layers"] == report["layers"]
    assert short["missing_bytes"] == report["tensor_bytes"]
    done = run_artel("inspect", part, "--dump", "output_norm.weight", tmp_path / "out.f32")
    assert done.returncode == 1
    assert "token_embd.weight" in done.stderr and "missing" in done.stderr
    assert not (tmp_path / "out.f32").exists()


def test_dump_decodes_a_tensor(run_artel, report, tmp_path):
    tensor = tensors_of(report)["token_embd.weight"]
    assert tensor["format"] == "F16"
    out = tmp_path / "out.f32"
    run_artel("inspect", MODEL, "--dump", "token_embd.weight", out, check=True)
    raw = MODEL.read_bytes()[tensor["offset"]:tensor["offset"] + tensor["bytes"]]
    halves = struct.unpack(f"<{len(raw) // 2}e", raw)
    assert out.read_bytes() == struct.pack(f"<{len(halves)}f", *halves)


def test_dump_of_no_such_tensor(run_artel, tmp_path):
    done = run_artel("inspect", MODEL, "--dump", "nothing", tmp_path / "out.f32")
    assert done.returncode == 1 and "'nothing'" in done.stderr
    assert not (tmp_path / "out.f32").exists()


@pytest.mark.parametrize("name", ["trunc_counts", "trunc_kv_key", "trunc_kv_mid",
                                  "trunc_before_infos", "trunc_infos"])
def test_a_cut_index_is_refused_by_name(run_artel, name):
    done = run_artel("inspect", MODEL.with_name(f"{name}.gguf"))
    assert done.returncode == 1
    assert f"{name}.gguf" in done.stderr and not done.stdout
