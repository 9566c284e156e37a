"""That the editors' database has kernels and device headers beside what CMake lists."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CompileCommands(unittest.TestCase):
    def write(self, *files, toolkit=True):
        """Status, output and entries for a database of these files and an nvcc that only pretends."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            entries = [{"directory": "/", "file": file, "command": "c++"} for file in files]
            (folder / "in.json").write_text(json.dumps(entries))
            nvcc = folder / "cuda/bin/nvcc"
            nvcc.parent.mkdir(parents=True)
            if toolkit:
                nvcc.touch()
            done = subprocess.run(
                [sys.executable, ROOT / "tools/compile_commands.py", "--nvcc", nvcc, "--out", folder / "out.json",
                 folder / "in.json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            out = folder / "out.json"
            return done.returncode, done.stdout, json.loads(out.read_text()) if out.exists() else []

    def test_every_kernel_and_device_header_is_listed(self):
        status, _, entries = self.write("/a.cpp")
        self.assertEqual((status, entries[0]["file"]), (0, "/a.cpp"))
        listed = {entry["file"] for entry in entries}
        for path in (*(ROOT / "src/kernels").rglob("*.cu"), *(ROOT / "src/ptx").glob("*.h")):
            self.assertIn(str(path), listed)

    def test_without_a_toolkit_only_the_build_is_listed(self):
        status, output, entries = self.write("/a.cpp", toolkit=False)
        self.assertEqual((status, len(entries)), (0, 1))
        self.assertIn("no nvcc", output)

    def test_a_unity_build_is_refused_with_the_remedy(self):
        status, output, _ = self.write("/build/Unity/unity_0_cxx.cxx")
        self.assertEqual(status, 1)
        self.assertIn("-DTILEWRIGHT_UNITY=OFF", output)


if __name__ == "__main__":
    unittest.main()
