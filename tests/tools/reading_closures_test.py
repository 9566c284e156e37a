"""The budget of reading: what is counted, and that a kernel above it is found."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/reading_closures.py"
sys.path.insert(0, str(ROOT / "tools"))
import reading_closures  # noqa: E402

TREE = {
    "src/kernels/a/k.cu": '#include "kernels/a/part.h"\n#include "ptx/fence.h"\n#include <cstdint>\n',
    "src/kernels/a/part.h": '#include "layout/layout.h"\n#include "kernels/a/k.h"\n1\n',
    "src/kernels/a/k.h": '#include "kernels/a/part.h"\n',  # a cycle is read once
    "src/kernels/a/other.h": "not reached\n" * 9,
    "src/layout/layout.h": "algebra\n" * 10 + '#include "arch/fragments/mma.h"\n',
    "src/arch/fragments/mma.h": "fragment\n" * 5 + '#include "tilewright/error.h"\n',
    "src/ptx/fence.h": "instruction\n" * 7,
    "include/tilewright/error.h": "error\n" * 2,
}
EXCEPTIONS = str(reading_closures.EXCEPTIONS)


class ReadingClosures(unittest.TestCase):
    def run_tool(self, files, *words):
        """Exit status, output, and the exceptions that are then in the tree."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run([sys.executable, TOOL, folder, *words], capture_output=True, text=True)
            file = pathlib.Path(folder) / EXCEPTIONS
            return done.returncode, done.stdout + done.stderr, file.exists() and json.loads(file.read_text())

    def test_lines_are_counted_once_and_by_kind(self):
        status, output, _ = self.run_tool(TREE, "--json")
        self.assertEqual(status, 0, output)
        self.assertEqual(json.loads(output)["kernels"],
                         {"a/k": {"files": 7, "lines": 33, "without_algebra": 16, "own": 9, "budget": 2000}})

    def test_a_kernel_above_its_budget_is_found(self):
        for family, budget in (("a", 2000), ("attention/decode", 2400), ("sparse_attention/x", 2400)):
            for extra, status in ((0, 0), (1, 1)):
                text = "line\n" * (budget + extra)
                got, output, _ = self.run_tool({f"src/kernels/{family}/k.cu": text})
                self.assertEqual(got, status, output)
                if status:
                    self.assertIn(f"{family}/k: {budget + 1} lines must be read, its budget is {budget}", output)

    def test_an_exception_may_only_fall(self):
        def run(lines, agreed, *words):
            return self.run_tool({"src/kernels/a/k.cu": "line\n" * lines, EXCEPTIONS: json.dumps({"a/k": agreed})},
                                 *words)

        self.assertEqual(run(2500, 2500)[0], 0)
        status, output, _ = run(2501, 2500)
        self.assertEqual(status, 1)
        self.assertIn("its exception is 2500", output)
        status, _, kept = run(2501, 2500, "--lower")
        self.assertEqual((status, kept), (1, {"a/k": 2500}))
        status, output, _ = run(2400, 2500)
        self.assertEqual(status, 1)
        self.assertIn("run with --lower", output)
        self.assertEqual(run(2400, 2500, "--lower")[2], {"a/k": 2400})
        self.assertEqual(run(1999, 2500, "--lower")[2], {})

    def test_an_exception_of_no_kernel_is_found(self):
        status, output, _ = self.run_tool({"src/kernels/a/k.cu": "\n", EXCEPTIONS: '{"a/gone": 2100}'})
        self.assertEqual(status, 1)
        self.assertIn("a/gone: has an exception but is no kernel", output)

    def test_an_include_of_nothing_and_a_tree_without_kernels_fail(self):
        status, output, _ = self.run_tool({"src/kernels/a/k.cu": '#include "a/b.h"\n'})
        self.assertEqual(status, 1)
        self.assertIn('includes "a/b.h", which is neither in src nor in include', output)
        self.assertEqual(self.run_tool({"src/base/a.h": "\n"})[0], 1)

    def test_the_kernels_of_this_tree_fit(self):
        found = reading_closures.closures(ROOT)
        self.assertEqual(list(reading_closures.breaches(found, reading_closures.read_exceptions(ROOT))), [])
        self.assertIn("attention/k5_warp_specialized", found)


if __name__ == "__main__":
    unittest.main()
