#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Self-tests of tools/tidy.py: each rule refuses what it must and lets its neighbour pass."""
import os
import tempfile
import unittest

import tidy

CMAKE = """artel_library(base       DEPENDS                LINKS outside)
artel_library(graph      DEPENDS base)
artel_library(backends   DEPENDS base graph)
artel_library(engine     DEPENDS base backends
                         LINKS outside)
artel_library(cluster    DEPENDS base)
artel_library(net        DEPENDS base cluster)
artel_executable(artel cli DEPENDS base cluster)
"""
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
SEEN = set()


def findings(rule, texts, sizes=None):
    SEEN.add(rule)
    tree = tidy.Tree({"CMakeLists.txt": CMAKE, **texts}, sizes)
    return [f for f in rule(tree) if f.path != "CMakeLists.txt"]


class TidyTest(unittest.TestCase):
    def refuses(self, rule, path, text, line, word):
        """Exactly one finding, at path:line, whose text holds `word`."""
        found = findings(rule, {path: text})
        self.assertEqual([(f.path, f.line) for f in found], [(path, line)], found)
        self.assertIn(word, found[0].text)

    def passes(self, rule, path, text):
        self.assertEqual(findings(rule, {path: text}), [])

    # ---- include directions

    def test_dependency_table_is_read_from_cmake(self):
        table = tidy.dependency_table(CMAKE)
        self.assertEqual(table["base"], {"base"})
        self.assertEqual(table["engine"], {"engine", "base", "backends"})
        self.assertEqual(table["cli"], {"cli", "base", "cluster"})

    def test_include_against_the_direction(self):
        rule = tidy.include_directions
        self.refuses(rule, "src/graph/op.hpp", '#include "base/result.hpp"\n'
                     '#include "engine/stage.hpp"\n', 2, "graph may not include engine")
        self.passes(rule, "src/engine/stage.cpp", '#include "backends/backend.hpp"\n')
        self.passes(rule, "src/graph/op.hpp", '// #include "engine/stage.hpp"\n')

    def test_include_without_folder(self):
        self.refuses(tidy.include_directions, "src/graph/op.cpp", '#include "op.hpp"\n', 1, "src/")

    def test_include_of_a_backends_inside(self):
        self.refuses(tidy.include_directions, "src/engine/stage.cpp",
                     '#include "backends/cpu/matmul.hpp"\n', 1, "backends/backend.hpp")

    def test_sockets_only_where_they_live(self):
        rule = tidy.include_directions
        self.refuses(rule, "src/engine/x.cpp", "#include <sys/socket.h>\n", 1, "sockets live")
        self.passes(rule, "src/net/x.cpp", "#include <sys/socket.h>\n")

    def test_protobuf_only_in_protocol(self):
        self.refuses(tidy.include_directions, "src/cluster/x.cpp",
                     "#include <google/protobuf/message.h>\n", 1, "protocol/messages.hpp")

    def test_heavy_header(self):
        rule = tidy.include_directions
        self.refuses(rule, "src/base/x.hpp", "#include <nlohmann/json.hpp>\n", 1, "heavy")
        self.passes(rule, "src/base/x.cpp", "#include <nlohmann/json.hpp>\n")

    # ---- banned words

    def test_banned_in_the_pure_folders(self):
        for text, instead in [("std::unordered_map<int, int> m;", "std::map"),
                              ("std::uniform_int_distribution<int> d;", "base/random.hpp"),
                              ("auto t = std::chrono::steady_clock::now();", "Clock"),
                              ("std::mt19937 g;", "Random"),
                              ('auto v = getenv("X");', "Storage"),
                              ("std::map<Node*, int> m;", "key by id"),
                              ("std::mutex m;", "no threads")]:
            with self.subTest(text):
                self.refuses(tidy.banned_words, "src/cluster/x.cpp", text + "\n", 1, instead)

    def test_threads_are_fine_in_net_but_not_in_engine(self):
        self.passes(tidy.banned_words, "src/net/x.cpp",
                    "std::mutex m;\nstd::unordered_map<A, B> u;\n")
        self.refuses(tidy.banned_words, "src/engine/x.cpp", "\nstd::thread t;\n", 2, "no threads")

    def test_library_neither_prints_nor_exits(self):
        rule = tidy.banned_words
        for text in ["std::cout << 1;", 'printf("x");', "std::exit(1);", "std::abort();"]:
            with self.subTest(text):
                self.refuses(rule, "src/graph/x.cpp", text + "\n", 1, "never prints or exits")
                self.passes(rule, "src/cli/x.cpp", text + "\n")
        self.passes(rule, "src/graph/x.cpp", 'snprintf(a, 1, "x");\n')

    def test_words_of_all_folders(self):
        rule = tidy.banned_words
        self.refuses(rule, "src/graph/x.cpp", "throw 1;\n", 1, "return an Error")
        self.passes(rule, "src/cli/x.cpp", 'throw CLI::RequiredError("x");\n')
        self.refuses(rule, "src/graph/x.cpp", 'auto s = std::format("x");\n', 1, "fmt::format")
        self.refuses(rule, "src/graph/x.cpp", "assert(x);\n", 1, "ARTEL_CHECK")
        self.passes(rule, "src/graph/x.cpp", "static_assert(sizeof(int) == 4);\n")

    def test_static_mutable_state(self):
        rule = tidy.banned_words
        for text in ["static int count = 0;", "    static std::vector<int> seen;",
                     "thread_local int depth{0};"]:
            with self.subTest(text):
                self.refuses(rule, "src/graph/x.cpp", text + "\n", 1, "mutable")
        self.passes(rule, "src/graph/x.cpp", "static constexpr int kCount = 0;\n"
                    "static const std::vector<int> table = make();\n"
                    "static Result<Graph> create(int a);\nstatic int twice(int a) {\n")

    def test_comments_and_literals_are_not_code(self):
        self.passes(tidy.banned_words, "src/cluster/x.cpp",
                    '// std::mutex\n/* getenv\n throw */ auto s = "throw std::thread";\n'
                    'auto r = R"(throw\nstd::mutex)";\n')

    def test_stripping_keeps_line_numbers(self):
        self.refuses(tidy.banned_words, "src/cluster/x.cpp",
                     '/* a\n b */\nauto r = R"(a\nb)";\nchar c = \'"\';\nthrow 1;\n', 6, "throw")

    # ---- tests and registries

    def test_lost_tests(self):
        rule = tidy.lost_tests
        self.refuses(rule, "src/graph/op_test.cpp", "int x;\n", 1, "no TEST()")
        self.refuses(rule, "src/cli/x_test.cpp", "TEST(A, B) {}\n", 1, "artel_library(cli)")
        self.refuses(rule, "tests/property/x_test.cpp", "TEST(A, B) {}\n", 1, "builds no")
        self.passes(rule, "src/graph/op_test.cpp", "TEST_F(A, B) {}\n")
        self.assertEqual(findings(rule, {
            "tests/property/x_test.cpp": "TEST(A, B) {}\n",
            "tests/property/CMakeLists.txt": "file(GLOB sources *_test.cpp)\n"}), [])
        self.assertEqual([f.path for f in findings(rule, {
            "tests/property/x_test.cpp": "TEST(A, B) {}\n",
            "tests/property/CMakeLists.txt": "artel_add_test(p SOURCES y_test.cpp)\n"})],
            ["tests/property/x_test.cpp"])

    def test_unregistered_architecture_and_format(self):
        rule = tidy.unregistered
        models = {"src/models/registry.cpp": "&kGemma3, // line\n", "src/models/gemma3.cpp": "",
                  "src/models/blocks.cpp": "// tidy: helper\n", "src/models/qwen3.cpp": ""}
        self.assertEqual([f.path for f in findings(rule, models)], ["src/models/qwen3.cpp"])
        formats = {"src/quant/formats.hpp": "using Formats = List<Q4K>;\n",
                   "src/quant/q4_k.hpp": "", "src/quant/q5_k.hpp": "",
                   "src/quant/format.hpp": "// a\n// tidy: helper\n"}
        self.assertEqual([f.path for f in findings(rule, formats)], ["src/quant/q5_k.hpp"])

    # ---- shape of files

    def test_long_function(self):
        rule = tidy.function_length
        body = "    int a;\n" * 69
        self.refuses(rule, "src/base/x.cpp",
                     f"namespace a {{\n\nint f(int b) {{\n{body}}}\n}}\n", 3, "71 lines")
        self.passes(rule, "src/base/x.cpp", f"int f(int b) {{\n{body[11:]}}}\n")
        self.passes(rule, "src/base/x.cpp", f"// Long because flat.\nint f(int b) {{\n{body}}}\n")
        self.passes(rule, "src/base/x.cpp", "struct A {\n" + "    int f() { return 1; }\n" * 90 +
                    "};\n")
        self.passes(rule, "src/base/x.cpp",
                    "constexpr int kTable[] = {\n" + "    1,\n" * 90 + "};\n")

    def test_long_member_function_and_constructor(self):
        rule = tidy.function_length
        body = "        a();\n" * 80
        self.refuses(rule, "src/base/x.cpp",
                     f"class A {{\n    void f() const {{\n{body}    }}\n}};\n", 2, "82 lines")
        self.refuses(rule, "src/base/x.cpp",
                     f"A::A(int b)\n    : b_(b) {{\n    if (b) {{\n{body}    }}\n}}\n", 1,
                     "85 lines")

    def test_todo(self):
        rule = tidy.todo_without_issue
        self.refuses(rule, "src/base/x.cpp", "// TO" "DO: later\n", 1, "#123")
        self.refuses(rule, "tools/x.py", "# FIX" "ME\n", 1, "issue")
        self.passes(rule, "src/base/x.cpp", "// TO" "DO(#12): later\n")

    def test_spdx(self):
        rule = tidy.spdx_line
        self.refuses(rule, "src/base/x.cpp", "int x;\n", 1, "SPDX")
        self.refuses(rule, "scripts/x", "#!/bin/bash\n\n", 1, "SPDX")
        self.passes(rule, "scripts/x", "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n")
        self.passes(rule, "src/base/x.cpp", SPDX)

    def test_line_shape(self):
        rule = tidy.line_shape
        self.refuses(rule, "src/base/x.cpp", "a" * 101 + "\n", 1, "101 columns")
        self.refuses(rule, "tools/x.py", "a = 1 \n", 1, "trailing space")
        self.passes(rule, "src/base/x.cpp", "a" * 100 + "\n")

    def test_file_size(self):
        found = findings(tidy.file_size, {}, {"a.bin": (1 << 20) + 1, "b.bin": 1 << 20})
        self.assertEqual([f.path for f in found], ["a.bin"])

    # ---- documents

    def test_one_title(self):
        rule = tidy.one_title
        self.refuses(rule, "a.md", "# A\n\n# B\n", 3, "2 lines")
        self.refuses(rule, "a.md", "## A\n", 1, "0 lines")
        self.passes(rule, "a.md", "# A\n```\n# a comment\n```\n## B\n")

    def test_dead_links(self):
        rule = tidy.dead_links
        self.refuses(rule, "docs/a.md", "[b](b.md)\n", 1, "dead link b.md")
        self.assertEqual(findings(rule, {
            "docs/a.md": "[b](b.md#x) [c](../src/base) [d](https://example.org/) [e](#here)\n",
            "docs/b.md": "", "src/base/x.cpp": ""}), [])

    def test_machine_places(self):
        rule = tidy.machine_places
        self.refuses(rule, "scripts/x", "cd /wo" "rk/x\n", 1, "one machine")
        self.refuses(rule, "docs/a.md", "\n/tm" "p/brief/x\n", 2, "one machine")
        self.refuses(rule, "scripts/x", "https://py" "pi.org/simple\n", 1, "host")
        self.passes(rule, "scripts/x", "cd build/work/x /tmp/x\n")

    # ---- checks outside the text

    def test_of_folder_sees_new_files_but_not_ignored_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            tidy.subprocess.run(["git", "init", "-q", folder], check=True)
            for name, text in ((".gitignore", "build\n"), ("a.md", "# A\n"), ("build", "x\n")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            self.assertEqual(tidy.Tree.of_folder(folder).paths, {".gitignore", "a.md"})

    def test_tests_not_compiled(self):
        tree = tidy.Tree({"src/base/a_test.cpp": "", "src/base/b_test.cpp": ""})
        with tempfile.TemporaryDirectory() as build:
            with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as file:
                file.write('[{"file": "/x/src/base/a_test.cpp"}]')
            found = list(tidy.tests_not_compiled(tree, "/x", build))
        self.assertEqual([f.path for f in found], ["src/base/b_test.cpp"])

    @unittest.skipUnless(tidy.shutil.which("clang-format"), "clang-format is not installed")
    def test_format(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "src"))
            texts = {"src/a.cpp": "int  a ;\n", "src/b.cpp": "int b;\n"}
            for name, text in texts.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            found = list(tidy.format_findings(tidy.Tree(texts), folder))
        self.assertEqual([(f.path, f.line) for f in found], [("src/a.cpp", 1)])

    def test_zz_every_rule_has_a_test(self):
        # Runs last (by name), so that SEEN holds the rules that the tests above called.
        self.assertEqual([r.__name__ for r in tidy.RULES if r not in SEEN], [])


if __name__ == "__main__":
    unittest.main()
