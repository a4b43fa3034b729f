#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Self-tests of tools/check_isa.py, on real objects where a compiler is there."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import check_isa

TOOL = Path(__file__).with_name("check_isa.py")
OWN = """namespace artel::cpu::avx2 {
template <class T> T twice(T a) { return a + a; }
template int twice<int>(int);
inline int counted() { static int n = 0; return ++n; }
int use() { return counted(); }
}  // namespace artel::cpu::avx2
"""
LEAK = """namespace artel::quant { inline int decode(int a) { static int n = a; return n; } }
namespace artel::cpu::avx2 { int use(int a) { return quant::decode(a); } }
"""
TABLE = """namespace artel::quant { inline constexpr int kTable[] = {1, 2}; }
namespace artel::cpu::avx2 { const int* use() { return quant::kTable; } }
"""
MADE_TABLE = """namespace artel::quant { int f(); inline int made = f(); }
namespace artel::cpu::avx2 { int use() { return quant::made; } }
"""


class CheckIsaTest(unittest.TestCase):
    def test_namespaces_of_mangled_names(self):
        self.assertEqual(check_isa.namespaces("_ZN5artel3cpu4avx23dotEv"),
                         ["artel", "cpu", "avx2", "dot"])
        self.assertEqual(check_isa.namespaces("_ZGVZN5artel3cpu4avx21fEvE1n"),
                         ["artel", "cpu", "avx2", "f"])
        self.assertEqual(check_isa.namespaces("_Z3fooi"), [])

    def test_a_parameter_type_is_not_a_namespace(self):
        self.assertFalse(check_isa.is_own("_ZN5artel5quant6decodeENS_3cpu4avx23RegE", "avx2"))
        self.assertFalse(check_isa.is_own("_ZNSt6vectorIN5artel3cpu4avx21XESaIS3_EED1Ev", "avx2"))
        self.assertTrue(check_isa.is_own("_ZN5artel3cpu4avx25twiceIiEET_S3_", "avx2"))
        self.assertTrue(check_isa.is_own("_ZN5artel8backends3cpu4avx23dotEv", "avx2"))

    def check(self, source):
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "x_avx2.cpp.o")
            subprocess.run(["c++", "-std=c++20", "-x", "c++", "-c", "-", "-o", str(target)],
                           input=source, text=True, check=True)
            return subprocess.run([sys.executable, str(TOOL), folder], capture_output=True,
                                  text=True)

    @unittest.skipUnless(shutil.which("c++") and shutil.which("objdump"), "no compiler")
    def test_real_objects(self):
        self.assertEqual(self.check(OWN).returncode, 0, self.check(OWN).stdout)
        done = self.check(LEAK)
        self.assertEqual(done.returncode, 1)
        self.assertIn("artel::quant::decode", done.stdout)

    @unittest.skipUnless(shutil.which("c++") and shutil.which("objdump"), "no compiler")
    def test_read_only_data_is_no_code(self):
        self.assertEqual(self.check(TABLE).returncode, 0, self.check(TABLE).stdout)
        done = self.check(MADE_TABLE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("artel::quant::made", done.stdout)

    def test_nothing_to_check_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, str(TOOL), folder], capture_output=True)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    unittest.main()
