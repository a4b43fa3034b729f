#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if an object compiled for an instruction set holds a weak symbol outside its namespace.

usage: check_isa.py BUILD_DIR

A file like matmul_avx2.cpp is compiled with -mavx2. If it makes an inline function or a template of
ours or of std into a weak symbol, the linker may keep that copy for the whole program, which then
crashes on a CPU without AVX2. So each weak symbol there must be inside the file's own namespace
(artel::cpu::avx2), or be read-only data, which holds no instructions and none to make it. The
remedy is in the message.
"""
import re
import subprocess
import sys
from pathlib import Path

ISAS = ["avx2", "avx512", "neon"]
# Emitted by the compiler itself; data, not code.
ALLOWED = re.compile(r"^DW\.ref\.__gxx_personality_v0$")


def namespaces(mangled):
    """The nested names of a mangled symbol: _ZN5artel3cpu4avx23dotEv -> [artel, cpu, avx2, dot].
    Prefixes of local statics, guards and type tables are skipped. [] where there is no nesting."""
    match = re.match(r"_Z(?:GV|TV|TI|TS|TT|GR)?Z*N[rVKRO]*", mangled)
    names, at = [], match.end() if match else len(mangled)
    while length := re.match(r"\d+", mangled[at:]):
        start = at + length.end()
        at = start + int(length.group(0))
        names.append(mangled[start:at])
    return names


def is_own(mangled, isa):
    names = namespaces(mangled)
    return names[:1] == ["artel"] and isa in names[1:-1]


def weak_symbols(table):
    """The defined weak and unique symbols in the output of `objdump -t`, without read-only data.
    A line: address, seven columns of flags (the first "u": unique, the second "w": weak; the last
    "O": an object), section, size, name."""
    for line in table.splitlines():
        match = re.match(r"[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+\s+(?:\.hidden )?(\S+)$", line)
        if not match or match[2] == "*UND*":
            continue
        flags, section, name = match.groups()
        is_constant = flags[6] == "O" and section.startswith(".rodata")
        if (flags[0] == "u" or flags[1] == "w") and not is_constant:
            yield name


def isa_of(path):
    return next((isa for isa in ISAS if path.name.endswith(f"_{isa}.cpp.o")), None)


def main():
    if len(sys.argv) != 2:
        print("usage: check_isa.py BUILD_DIR", file=sys.stderr)
        return 2
    objects = [p for p in sorted(Path(sys.argv[1]).rglob("*.cpp.o")) if isa_of(p)]
    bad = 0
    for path in objects:
        symbols = subprocess.run(["objdump", "-t", str(path)], check=True, capture_output=True,
                                 text=True)
        for symbol in weak_symbols(symbols.stdout):
            if not is_own(symbol, isa_of(path)) and not ALLOWED.match(symbol):
                bad += 1
                name = subprocess.run(["c++filt", symbol], capture_output=True, text=True)
                print(f"{path.name}: weak symbol {name.stdout.strip() or symbol}; make it static, "
                      f"force it inline, or put it in artel::cpu::{isa_of(path)}")
    print(f"check_isa: {len(objects)} objects, {bad} symbols that may leak")
    if not objects:
        print("check_isa: no *_avx2.cpp.o and the like below the build folder: nothing was checked")
        return 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
