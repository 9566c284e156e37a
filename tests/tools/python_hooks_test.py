"""The simulator's hooks for Python, on packages that only look like the real ones."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HOOKS = pathlib.Path(__file__).resolve().parents[2] / "src/sim/python"

PACKAGES = {
    "triton/__init__.py": "",
    "triton/backends/__init__.py": "",
    "triton/backends/nvidia/__init__.py": "",
    "triton/backends/nvidia/compiler.py": """
class CUDABackend:
    def make_cubin(self, src, metadata, opt, capability):
        return b"machine code"
""",
    "numba/__init__.py": "",
    "numba/cuda/__init__.py": "",
    "numba/cuda/codegen.py": """
class CUDACodeLibrary:
    _linking_files = ()
    def _ensure_cc(self, cc):
        return cc
    def get_asm_str(self, cc=None):
        return "PTX"
    def get_cubin(self, cc=None):
        return "machine code"
""",
    "cuda/__init__.py": "",
    "cuda/core.py": """
class ObjectCode:
    @staticmethod
    def from_ptx(text):
        return ("PTX object", text)
""",
    "sitecustomize.py": "import builtins\nbuiltins.own_sitecustomize_ran = True\n",
}


class PythonHooks(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.packages = pathlib.Path(scratch.name)
        for name, text in PACKAGES.items():
            path = self.packages / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def python(self, program, **variables):
        environment = {**os.environ, "PYTHONPATH": f"{HOOKS}:{self.packages}", "PYTHONDONTWRITEBYTECODE": "1",
                       **variables}
        for name in ("CUTE_DSL_KEEP_PTX", "TILEWRIGHT_SIM_PTX", "TRITON_CACHE_DIR"):
            if name not in variables:
                environment.pop(name, None)
        done = subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout.splitlines()

    def test_compilers_hand_over_ptx(self):
        lines = self.python("""
from triton.backends.nvidia.compiler import CUDABackend
from numba.cuda.codegen import CUDACodeLibrary
print(CUDABackend().make_cubin("PTX", {}, None, 90))
print(CUDACodeLibrary().get_cubin((9, 0)))
""")
        self.assertEqual(lines, ["b'PTX'", "('PTX object', b'PTX')"])

    def test_linking_other_files_is_refused_with_their_names(self):
        lines = self.python("""
from numba.cuda.codegen import CUDACodeLibrary
library = CUDACodeLibrary()
library._linking_files = ("extra.o",)
try:
    library.get_cubin((9, 0))
except RuntimeError as error:
    print(error)
""")
        self.assertIn("extra.o", lines[0])

    def test_nothing_else_is_imported_and_a_hidden_sitecustomize_still_runs(self):
        lines = self.python("import builtins, sys; print('triton' in sys.modules, builtins.own_sitecustomize_ran)")
        self.assertEqual(lines, ["False True"])

    def test_ptx_is_kept_in_a_folder_that_goes_with_the_process(self):
        folder, kept, same = self.python("""
import os
folder = os.environ["TILEWRIGHT_SIM_PTX"]
print(folder, os.environ["CUTE_DSL_KEEP_PTX"], folder == os.environ["CUTE_DSL_DUMP_DIR"] and os.path.isdir(folder))
""")[0].split()
        self.assertEqual((kept, same), ("1", "True"))
        self.assertFalse(os.path.exists(folder))

    def test_what_the_user_has_set_stays(self):
        lines = self.python("import os; print(os.environ['TRITON_CACHE_DIR'], os.environ['TILEWRIGHT_SIM_PTX'])",
                            TRITON_CACHE_DIR="/a", TILEWRIGHT_SIM_PTX="/b")
        self.assertEqual(lines, ["/a /b"])


if __name__ == "__main__":
    unittest.main()
