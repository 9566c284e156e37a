"""The include checker fails where it should: a checker that passes everything is worse than none."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_includes.py"


def check(files):
    """Runs the checker over a tree made of {path: text}; returns (exit status, output)."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True)
        return done.returncode, done.stdout


class CheckIncludes(unittest.TestCase):
    def assert_breach(self, files, message):
        status, output = check(files)
        self.assertEqual(status, 1, output)
        self.assertIn(message, output)

    def test_allowed_includes_pass(self):
        status, output = check({
            "src/layout/a.h": '#include "base/error.h"\n#include "layout/b.h"\n#include <vector>\n',
            "src/arch/fragments/c.h": '#include "layout/a.h"\n#include "arch/limits.h"\n',
            "src/kernels/probe/d.cu": '#include "ptx/fence.h"\n#include "kernels/probe/d.h"\n',
            "src/cli/e.cpp": '#include "reference/attention.h"\n',
            "include/tilewright/f.h": '#include "tilewright/error.h"\n#include <string>\n',
        })
        self.assertEqual(status, 0, output)

    def test_breaches_are_named_with_file_and_line(self):
        self.assert_breach({"src/base/a.h": '\n#include "layout/layout.h"\n'},
                           'src/base/a.h:2: base may not include "layout/layout.h"')
        self.assert_breach({"src/arch/limits.h": '#include "layout/layout.h"\n'}, "arch may not include")
        self.assert_breach({"src/sim/memory/m.h": '#include "layout/layout.h"\n'}, "sim may not include")
        self.assert_breach({"src/reference/a.h": '#include "arch/limits.h"\n'}, "reference may not include")
        self.assert_breach({"src/kernels/a/k.h": '#include "ptx/fence.h"\n'}, "kernels may not include")
        self.assert_breach({"src/ops/o.cpp": '#include "reference/attention.h"\n'}, "ops may not include")

    def test_cuda_headers_asm_and_unknown_folders(self):
        self.assert_breach({"src/base/a.h": "#include <cuda.h>\n"}, "CUDA header cuda.h")
        self.assert_breach({"src/layout/a.h": 'void f() { asm volatile("nop"); }\n'}, "`asm` outside src/ptx")
        self.assert_breach({"src/misc/a.h": "#include <vector>\n"}, "folder misc/ has no row")
        self.assert_breach({"src/base/a.h": '#include "error.h"\n'}, "is not a path below src/ or include/")
        self.assert_breach({"src/base/ok.h": "\n", "include/tilewright/a.h": '#include "base/error.h"\n'},
                           "a public header may not include base/error.h")

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(check({})[0], 1)


if __name__ == "__main__":
    unittest.main()
