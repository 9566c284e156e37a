"""The include checker fails where it should: a checker that passes everything is worse than none."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_includes.py"
SPEC = importlib.util.spec_from_file_location("check_includes", TOOL)
tool = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tool)


def write_tree(folder, files):
    """Writes {path: text}; returns the files of src/."""
    paths = [pathlib.Path(folder) / name for name in files]
    for path, text in zip(paths, files.values()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [path for path in paths if path.relative_to(folder).parts[0] == "src"]


def check(files):
    """Runs the checker over a tree made of {path: text}; returns (exit status, output)."""
    with tempfile.TemporaryDirectory() as folder:
        write_tree(folder, files)
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
            "src/kernels/linear/d.cu": '#include "ptx/fence.h"\n#include "kernels/linear/d.h"\n',
            "src/cli/e.cpp": '#include "reference/linear/linear.h"\n',
            "include/tilewright/f.h": '#include "tilewright/error.h"\n#include <string>\n',
        })
        self.assertEqual(status, 0, output)

    def test_an_exception_is_of_its_file_and_folder_alone(self):
        status, output = check({"src/cli/info/info.cpp": '#include "device/device.h"\n'})
        self.assertEqual(status, 0, output)
        self.assert_breach({"src/cli/info/info.cpp": '#include "ops/moe/plan.h"\n'}, "cli may not include")
        with tempfile.TemporaryDirectory() as folder:
            write_tree(folder, {"src/cli/info/info.cpp": '#include "base/error.h"\n'})
            breaches = list(tool.check_exceptions(pathlib.Path(folder), {("cli/info/info.cpp", "device"): "why"}))
        self.assertEqual(len(breaches), 1)
        self.assertIn("src/cli/info/info.cpp includes nothing of device/", breaches[0])

    def test_breaches_are_named_with_file_and_line(self):
        self.assert_breach({"src/base/a.h": '\n#include "layout/layout.h"\n'},
                           'src/base/a.h:2: base may not include "layout/layout.h"')
        self.assert_breach({"src/arch/limits.h": '#include "layout/layout.h"\n'}, "arch may not include")
        self.assert_breach({"src/sim/memory/m.h": '#include "layout/layout.h"\n'}, "sim/memory may not include")
        self.assert_breach({"src/reference/a.h": '#include "arch/limits.h"\n'}, "reference may not include")
        self.assert_breach({"src/kernels/moe/k.h": '#include "kernels/model/l.h"\n'},
                           "kernels/moe may not include")
        self.assert_breach({"src/kernels/moe/k.h": '#include "ptx/fence.h"\n',
                            "src/ops/o.cpp": '#include "kernels/moe/k.h"\n'}, "is device code")
        self.assert_breach({"src/ops/o.cpp": '#include "reference/linear/linear.h"\n'}, "ops may not include")
        for room in ("cli", "bench", "verify", "model"):  # devices by the public headers, as any program has them
            self.assert_breach({f"src/{room}/a.cpp": '#include "device/graph.h"\n'}, f"{room} may not include")

    def test_the_tool_uses_operators_by_their_public_headers(self):
        for room in ("model", "report", "verify", "bench", "cli"):
            for folder in (room, f"{room}/part"):
                self.assertEqual(check({f"src/{folder}/a.cpp": '#include "tilewright/moe.h"\n'})[0], 0)
                self.assert_breach({f"src/{folder}/a.cpp": '#include "ops/moe/problem.h"\n'},
                                   f'{room} may not include "ops/moe/problem.h"')

    def test_cuda_headers_asm_and_unknown_folders(self):
        self.assert_breach({"src/base/a.h": "#include <cuda.h>\n"}, "CUDA header cuda.h")
        self.assert_breach({"src/layout/a.h": 'void f() { asm volatile("nop"); }\n'}, "`asm` outside src/ptx")
        self.assert_breach({"src/sim/check/a.cpp": 'auto x = std::getenv("X");\n'},
                           "getenv outside src/base/env.cpp")
        self.assert_breach({"src/misc/a.h": "#include <vector>\n"}, "folder misc/ has no row")
        self.assert_breach({"src/base/a.h": '#include "error.h"\n'}, "is not a path below src/ or include/")
        self.assert_breach({"src/base/ok.h": "\n", "include/tilewright/a.h": '#include "base/error.h"\n'},
                           "a public header may not include base/error.h")

    def test_rooms_of_the_simulator(self):
        status, output = check({
            "src/sim/insn/scalar/a.cpp": '#include "sim/insn/lanes.h"\n#include "sim/compile/lowering.h"\n',
            "src/sim/check/order/b.cpp": '#include "sim/event/observer.h"\n#include "sim/state/warp.h"\n',
            "src/sim/machine.cpp": '#include "sim/exec/engine.h"\n#include "sim/check/checkers.h"\n',
            "src/sim/driver/objects/c.h": '#include "sim/machine.h"\n',
            "src/verify/d.cpp": '#include "sim/trace/trace_observer.h"\n',
        })
        self.assertEqual(status, 0, output)
        self.assert_breach({"src/ops/o.cpp": '#include "sim/parse/parser.h"\n'}, "ops may not include")
        self.assert_breach({"src/sim/exec/e.cpp": '#include "sim/check/checkers.h"\n'},
                           "src/sim/exec/e.cpp:1: sim/exec may not include")
        self.assert_breach({"src/sim/state/s.h": '#include "sim/event/observer.h"\n'}, "sim/state may not include")
        self.assert_breach({"src/sim/check/init/i.cpp": '#include "sim/exec/engine.h"\n'},
                           "sim/check/init may not include")
        self.assert_breach({"src/sim/report/r.h": '#include "sim/machine.h"\n'}, "sim/report may not include")
        self.assert_breach({"src/sim/state/ports/p.h": "\n"}, "folder sim/state/ports/ has no row")

    def test_circles_between_folders(self):
        two = {"src/ops/a.h": '#include "ops/b/b.h"\n', "src/ops/b/b.h": '\n#include "ops/a.h"\n'}
        self.assert_breach(two, "ops/ includes ops/b/ (src/ops/a.h:1); ops/b/ includes ops/ (src/ops/b/b.h:2)")
        three = {"src/cli/x/a.h": '#include "cli/y/a.h"\n', "src/cli/y/a.h": '#include "cli/z/a.h"\n',
                 "src/cli/z/a.h": '#include "cli/x/a.h"\n'}
        self.assert_breach(three, "cli/x/ includes cli/y/")
        down = {"src/cli/x/a.h": '#include "cli/y/a.h"\n#include "cli/x/b.h"\n#include "cli/z/a.h"\n',
                "src/cli/y/a.h": '#include "cli/z/a.h"\n', "src/cli/z/a.h": "\n"}
        self.assertEqual(check(down)[0], 0)

    def test_backward_includes_only_become_fewer(self):
        files = {"src/tile/a.h": '#include "kernels/k/k.h"\n', "src/kernels/k/k.cu": '#include "tile/a.h"\n'}
        with tempfile.TemporaryDirectory() as folder:
            sources = write_tree(folder, files)
            breaches = lambda known: list(tool.check_circles(pathlib.Path(folder), sources, known))
            self.assertIn("in a circle", breaches({})[0])
            self.assertEqual(breaches({("tile", "kernels/k"): 1}), [])
            self.assertIn("lower it", breaches({("tile", "kernels/k"): 2})[0])
            self.assertIn("remove the new ones", breaches({("tile", "kernels/k"): 0})[0])

    def test_folders_of_more_than_forty_entries(self):
        full = {f"src/base/f{i}.h": "\n" for i in range(40)}
        self.assertEqual(check(full)[0], 0)
        for one_more in ("src/base/f40.h", "src/base/folder/f.h"):
            self.assert_breach({**full, one_more: "\n"}, "src/base: 41 entries, at most 40")
        tests = {f"tests/base/f{i}_test.cpp": "\n" for i in range(41)}
        self.assert_breach({"src/base/a.h": "\n", **tests}, "tests/base: 41 entries")

    def test_large_folders_only_become_smaller(self):
        with tempfile.TemporaryDirectory() as folder:
            write_tree(folder, {f"src/base/f{i}.h": "\n" for i in range(45)})
            sizes = lambda large, data=(): list(tool.check_sizes(pathlib.Path(folder), large, data))
            self.assertEqual(sizes({"src/base": 45}), [])
            self.assertEqual(sizes({}, {"src/base": "cases"}), [])
            self.assertIn("45 entries, at most 44", sizes({"src/base": 44})[0])
            self.assertIn("lower it", sizes({"src/base": 46})[0])
            self.assertIn("no such folder", sizes({"src/base": 45, "src/gone": 41})[0])

    def test_an_empty_tree_is_no_success(self):
        self.assertEqual(check({})[0], 1)


if __name__ == "__main__":
    unittest.main()
