#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the source tree that no compiler makes. Prints `file:line: what is wrong; what to do`.

usage: tidy.py [--build BUILD_DIR] [--list]

A rule is a function from a Tree to findings, listed in RULES; tools/tidy_test.py proves each on a
line that must be refused and one that must pass. Standard library only.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FILE_BYTES_MAX = 1 << 20
COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
HELPER_MARK = "tidy: helper"      # in the first lines of a file that is in no registry
LONG_MARK = "Long because"        # in the comment of a function that may be long


class Finding(NamedTuple):
    path: str
    line: int
    text: str


class Tree:
    """The files that git knows or would add: {path: text}; bytes that are no UTF-8 have no text."""

    def __init__(self, texts, sizes=None):
        self.texts = texts
        self.sizes = sizes or {p: len(t.encode()) for p, t in texts.items()}
        self.paths = set(self.sizes)
        self.code = {}  # C++ sources without comments and literals, line for line
        for path, text in texts.items():
            if path.endswith((".cpp", ".hpp")):
                self.code[path] = strip_cpp(text)

    @classmethod
    def of_folder(cls, root):
        # Root may check a clone that belongs to a user.
        listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached",
                                 "--others", "--exclude-standard"], cwd=root, check=True,
                                capture_output=True)
        texts, sizes = {}, {}
        for name in sorted(set(filter(None, listed.stdout.decode().split("\0")))):
            path = Path(root, name)
            if path.is_symlink() or not path.is_file():
                continue
            sizes[name] = path.stat().st_size
            try:
                if sizes[name] <= FILE_BYTES_MAX:
                    texts[name] = path.read_text("utf-8")
            except UnicodeDecodeError:
                pass
        return cls(texts, sizes)

    def lines(self, *suffixes):
        for path, text in self.texts.items():
            if path.endswith(suffixes):
                for number, line in enumerate(text.split("\n"), 1):
                    yield path, number, line

    def code_lines(self, under="src/", tests=True):
        for path, text in self.code.items():
            if path.startswith(under) and (tests or not path.endswith("_test.cpp")):
                for number, line in enumerate(text.split("\n"), 1):
                    yield path, number, line


STRIP = re.compile(r'R"(?P<mark>[^\s()\\]{0,16})\((?:.|\n)*?\)(?P=mark)"'
                   r'|//[^\n]*|/\*(?:.|\n)*?\*/'
                   r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'')


def strip_cpp(text):
    """C++ without comments and with empty literals, lines kept; #include lines stay as they are."""
    def blank(match):
        found = match.group(0)
        if found.startswith('"'):
            start = text.rfind("\n", 0, match.start()) + 1
            if text[start:match.start()].lstrip().startswith("#include"):
                return found
        edge = "" if found.startswith("/") else '""'
        return edge + "\n" * found.count("\n")
    return STRIP.sub(blank, text)


def folder_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "src" else None


# ---- include directions

LIBRARY = re.compile(r"^artel_(?:library|executable)\(([^)]*)\)", re.M)
# Outside headers that only some folders may include, and where that is decided.
OUTSIDE_HEADERS = [
    (r"<(boost/asio|netinet/|arpa/)", {"net", "api", "runtime"},
     "sockets live in net (and api, runtime)"),
    (r"<sys/socket\.h>", {"net", "api", "runtime", "text"},
     "sockets live in net (and api, runtime; text talks to its template child over a pair)"),
    (r"<openssl/", {"net", "api"}, "TLS lives in net and api"),
    (r"(<google/protobuf/|\.pb\.h)", {"protocol"}, "use the structs of protocol/messages.hpp"),
    (r"<CLI/", {"cli"}, "only cli parses the command line"),
    (r"<vulkan/|<volk", {"backends"}, "Vulkan lives in backends/vulkan"),
    (r"<spdlog/", {"base"}, "log through base/log.hpp"),
]
HEAVY_HEADER = re.compile(r"<(nlohmann/json\.hpp|boost/(asio|beast)|spdlog/|openssl/)|\.pb\.h")


def dependency_table(cmake):
    """{folder: folders it may include} from the artel_library lines."""
    table = {}
    for arguments in LIBRARY.findall(cmake):
        words = arguments.split()
        folder = words[words.index("DEPENDS") - 1] if "DEPENDS" in words else words[0]
        depends = words[words.index("DEPENDS") + 1:] if "DEPENDS" in words else []
        depends = depends[:depends.index("LINKS")] if "LINKS" in depends else depends
        table[folder] = {folder, *depends}
    return table


def include_directions(tree):
    table = dependency_table(tree.texts.get("CMakeLists.txt", ""))
    for path, number, line in tree.code_lines():
        match = re.match(r'\s*#\s*include\s*(["<][^">]+[">])', line)
        folder = folder_of(path)
        if not match or folder is None:
            continue
        header = match.group(1)
        if header.startswith('"'):
            target = header.strip('"').split("/")[0] if "/" in header else None
            if target is None:
                yield Finding(path, number, f"{header}: write the path from src/")
            elif target not in table.get(folder, {folder}):
                yield Finding(path, number, f"{folder} may not include {target} (CMakeLists.txt); "
                              "move the code, or pass what it needs through an interface")
            elif target == "backends" and folder != "backends" and header.count("/") > 1 \
                    and not path.endswith("_test.cpp"):
                yield Finding(path, number, f"{header} is inside a backend; include "
                              '"backends/backend.hpp" and choose through the registry')
        for pattern, allowed, advice in OUTSIDE_HEADERS:
            if re.search(pattern, header) and folder not in allowed:
                yield Finding(path, number, f"{header} in {folder}: {advice}")
        is_heavy = path.endswith(".hpp") and HEAVY_HEADER.search(header)
        if is_heavy and folder not in ("cli", "net", "runtime"):
            yield Finding(path, number, f"{header} is heavy: include it in the .cpp, and declare "
                          "what the header needs")


# ---- banned words

PURE = {"cluster", "protocol", "simulation"}
NO_THREADS = PURE | {"engine", "models", "graph"}
ALL = None
BANNED = [  # (folders, excepted path pattern, words, what to do instead)
    (PURE, "", r"\bunordered_\w+", "std::map or a sorted vector: hash order changes per run"),
    (PURE, "", r"\bstd::\w+_distribution\b", "the distributions of base/random.hpp"),
    (PURE, "", r"\b(system|steady|high_resolution)_clock\b", "the Clock of the Environment"),
    (PURE, "", r"\b(std::random_device|std::mt19937\w*|rand\(\))", "the Random of the Environment"),
    (PURE, r"_test\.cpp$", r"\b(getenv|std::filesystem|fopen|ifstream|ofstream)\b",
     "an option or Storage"),
    (PURE, "", r"\bstd::(map|set)<[^,<>]*\*", "a key by id: address order changes per run"),
    (NO_THREADS, "", r"\bstd::(jthread|thread|async|mutex|shared_mutex|recursive_mutex|lock_guard"
     r"|unique_lock|scoped_lock|condition_variable\w*)\b|\bsleep_for\b",
     "an event (cluster) or base/thread_pool.hpp (backends): no threads here"),
    (ALL, r"^src/cli/|^src/base/(check|log)\.cpp$|_test\.cpp$",
     r"\bstd::(cout|cerr|clog|exit|abort|terminate|quick_exit)\b|\b(f?printf|puts|perror|exit)\(",
     "return an Error, or log through base/log.hpp: library code never prints or exits"),
    (ALL, r"_test\.cpp$", r"\bthrow\b(?! CLI::)",
     "return an Error (base/result.hpp): we throw nothing"),
    (ALL, "", r"\bstd::v?format(_to)?\b", "fmt::format: GCC 12 has no std::format"),
    (ALL, "", r"(?<![\w_])assert\(|<cassert>|<assert\.h>", "ARTEL_CHECK or ARTEL_DCHECK"),
    (ALL, "", r"^\s*(static|thread_local|inline thread_local)\s+(?!const\b|constexpr\b|constinit "
     r"const\b)(?!.*\bconst\s+\w+\s*[=;{])[\w:<>,*&\s]+?\s+\w+\s*(=|;|\{)",
     "a member of an object that is passed in: no static mutable state"),
]


def banned_words(tree):
    for path, number, line in tree.code_lines():
        for folders, excepted, words, instead in BANNED:
            if folders is not None and folder_of(path) not in folders:
                continue
            if excepted and re.search(excepted, path):
                continue
            match = re.search(words, line)
            if match:
                yield Finding(path, number, f"'{match.group(0).strip()}' is banned in "
                              f"{folder_of(path) or 'src'}; use {instead}")


# ---- tests and registries

def lost_tests(tree):
    cmake = tree.texts.get("CMakeLists.txt", "")
    libraries = set(re.findall(r"^artel_library\((\w+)", cmake, re.M))
    for path, code in tree.code.items():
        if not path.endswith("_test.cpp"):
            continue
        if not re.search(r"^\s*(TYPED_TEST|TEST|TEST_F|TEST_P|TYPED_TEST_P|RC_GTEST_PROP)\(", code,
                         re.M):
            yield Finding(path, 1, "holds no TEST(); add one or rename the file")
        if path.startswith("src/") and folder_of(path) not in libraries:
            yield Finding(path, 1, f"no artel_library({folder_of(path)}) builds this test; move "
                          "the code that it tests into a library folder")
        if path.startswith("tests/"):
            folder = os.path.dirname(path)
            lists = tree.texts.get(f"{folder}/CMakeLists.txt", "")
            if not any(word in lists for word in ("*_test.cpp", "*.cpp", os.path.basename(path))):
                yield Finding(path, 1, f"{folder}/CMakeLists.txt builds no *_test.cpp: add it")


def unregistered(tree):
    for pattern, registry in ((r"^src/models/(\w+)\.cpp$", "src/models/registry.cpp"),
                              (r"^src/quant/(\w+)\.hpp$", "src/quant/formats.hpp")):
        if registry not in tree.texts:
            continue
        listed = re.sub(r"[^a-z0-9]", "", tree.texts[registry].lower())
        for path, text in tree.texts.items():
            match = re.match(pattern, path)
            if not match or path == registry or path.endswith("_test.cpp"):
                continue
            head = "\n".join(text.split("\n")[:12])
            if HELPER_MARK not in head and match.group(1).replace("_", "") not in listed:
                yield Finding(path, 1, f"not named in {registry}; add its line there, or write "
                              f"'// {HELPER_MARK}' below its header comment")


# ---- shape of files

SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b[^()=]*$|^\s*extern\s*\"\"\s*$")


def functions(code):
    """(first line, last line) of each function body's outermost braces, by counting braces."""
    stack, statement, first, line = [], "", 0, 1
    depth_in_function = 0
    for character in code:
        if character == "\n":
            line += 1
            statement += " "
        elif character == "{":
            is_scope = SCOPE.search(re.sub(r"^.*template\s*<[^{]*>\s*", "", statement.strip()))
            is_function = not depth_in_function and not is_scope and ")" in statement
            stack.append((is_function, first or line))
            depth_in_function += 1 if is_function or depth_in_function else 0
            if not depth_in_function:
                statement, first = "", 0
        elif character == "}":
            if stack:
                is_function, start = stack.pop()
                depth_in_function -= 1 if depth_in_function else 0
                if is_function:
                    yield start, line
            if not depth_in_function:
                statement, first = "", 0
        elif character == ";" and not depth_in_function:
            statement, first = "", 0
        elif not depth_in_function:
            if not statement.strip() and not character.isspace():
                statement, first = "", line
            statement += character


def function_length(tree):
    for path, code in tree.code.items():
        text_lines = tree.texts[path].split("\n")
        code_without_macros = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$",
                                     lambda m: "\n" * m.group(0).count("\n"), code, flags=re.M)
        for first, last in functions(code_without_macros):
            length = last - first + 1
            above = text_lines[max(0, first - 9):first + 3]
            if length > FUNCTION_LINES_MAX and not any(LONG_MARK in line for line in above):
                yield Finding(path, first, f"a function of {length} lines, {FUNCTION_LINES_MAX} at "
                              f"most; split it, or say '// {LONG_MARK} ...' above a flat one")


def todo_without_issue(tree):
    word = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\):)")
    for path, number, line in tree.lines(".cpp", ".hpp", ".py", ".cmake", "CMakeLists.txt",
                                         ".proto", ".md"):
        match = word.search(line)
        if match and "`" not in line:
            yield Finding(path, number, f"{match.group(1)} without an issue; write "
                          "'TO" "DO(#123): ...' or do it now")


SOURCES = (".cpp", ".hpp", ".py", ".cmake", "CMakeLists.txt", ".proto", ".comp", ".glsl", ".sh")


def is_script(path):
    return path.startswith("scripts/") or path == ".ci/run"


def spdx_line(tree):
    for path, text in tree.texts.items():
        if path.endswith(SOURCES) or is_script(path):
            lines = text.split("\n")
            first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
            if not re.match(r"(//|#) SPDX-License-Identifier: Apache-2\.0$", first):
                yield Finding(path, 1, "the first line (after #!) must be the comment "
                              "'SPDX-License-Identifier: Apache-2.0'")


def line_shape(tree):
    for path, number, line in tree.lines(*SOURCES, "scripts/setup", "scripts/test", "scripts/demo",
                                         ".ci/run"):
        if len(line) > COLUMNS_MAX:
            yield Finding(path, number, f"{len(line)} columns; break the line at {COLUMNS_MAX}")
        if line != line.rstrip() or "\t" in line:
            yield Finding(path, number, "a tab or trailing space; use spaces, none at the end")


def file_size(tree):
    for path, size in tree.sizes.items():
        if size > FILE_BYTES_MAX:
            yield Finding(path, 1, f"{size} bytes; files over 1 MiB do not belong here: make the "
                          "file in a test, or fetch it by hash")


# ---- documents

def outside_fences(tree):
    for path, text in tree.texts.items():
        if path.endswith(".md"):
            is_fenced, kept = False, []
            for number, line in enumerate(text.split("\n"), 1):
                if line.lstrip().startswith("```"):
                    is_fenced = not is_fenced
                elif not is_fenced:
                    kept.append((number, line))
            yield path, kept


def one_title(tree):
    for path, lines in outside_fences(tree):
        titles = [number for number, line in lines if re.match(r"# \S", line)]
        if len(titles) != 1:
            yield Finding(path, titles[1] if titles else 1,
                          f"{len(titles)} lines start with '# '; a page has one title")


def dead_links(tree):
    folders = {os.path.dirname(p) for p in tree.paths} | {""}
    folders |= {"/".join(f.split("/")[:n]) for f in folders for n in range(f.count("/") + 1)}
    for path, lines in outside_fences(tree):
        for number, line in lines:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:|#", target):
                    continue
                there = os.path.normpath(os.path.join(os.path.dirname(path),
                                                      target.split("#")[0]))
                if there not in tree.paths and there not in folders:
                    yield Finding(path, number, f"dead link {target}; name a file that exists")


PLACES = re.compile(r"(?<![\w.])/(wor[k]|roo[t]|far[m]|hom[e])/\w|/tm[p]/(brief|models)"
                    r"|\bpyp[i]\.org|pythonhoste[d]|de[b]\.debian\.org|archive\.ubunt[u]")


def machine_places(tree):
    for path, text in tree.texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            match = PLACES.search(line)
            if match:
                yield Finding(path, number, f"'{match.group(0)}' is a place of one machine or a "
                              "host; use a path from the repository's root or an option")


RULES = [include_directions, banned_words, lost_tests, unregistered, function_length,
         todo_without_issue, spdx_line, line_shape, file_size, one_title, dead_links,
         machine_places]


# ---- checks that need more than the text

def format_findings(tree, root):
    if shutil.which("clang-format") is None:
        print("tidy: clang-format is not installed, so the format is NOT checked")
        return
    paths = sorted(p for p in tree.code if p.startswith(("src/", "tests/", "tools/", "bench/")))
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *paths], cwd=root,
                          capture_output=True, encoding="utf-8", errors="replace")
    seen = set()
    for line in done.stderr.splitlines():
        match = re.match(r"([^:]+):(\d+):\d+: error:", line)
        if match and match.group(1) not in seen:
            seen.add(match.group(1))
            yield Finding(match.group(1), int(match.group(2)),
                          f"not formatted; run clang-format -i {match.group(1)}")
    if done.returncode != 0 and not seen:
        yield Finding(".clang-format", 1, f"clang-format failed: {done.stderr[-300:]}")


def tests_not_compiled(tree, root, build):
    """A test that is in no program of the build is lost, whatever the CMake text says."""
    listed = json.loads(Path(build, "compile_commands.json").read_text())
    compiled = {os.path.relpath(entry["file"], root) for entry in listed}
    for path in sorted(tree.code):
        if path.endswith("_test.cpp") and path not in compiled:
            yield Finding(path, 1, "in no program of the build; run cmake again, or add it")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", help="a configured build, to find tests that it leaves out")
    parser.add_argument("--list", action="store_true", help="print the rules")
    args = parser.parse_args()
    if args.list:
        print("\n".join(rule.__name__ for rule in RULES))
        return 0
    tree = Tree.of_folder(ROOT)
    findings = [f for rule in RULES for f in rule(tree)] + list(format_findings(tree, ROOT))
    if args.build:
        findings += tests_not_compiled(tree, ROOT, args.build)
    for finding in sorted(findings):
        print(f"{finding.path}:{finding.line}: {finding.text}")
    print(f"tidy: {len(tree.paths)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
