"""What ./run and tools/setup.sh do where something is in the way, with a compiler that only pretends."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NOBODY = 65534

CMAKE = """#!/bin/sh
mkdir -p build/release
[ -f build/release/CMakeCache.txt ] || echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/release/CMakeCache.txt
[ "$(cat build/release/CMakeCache.txt)" = "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" ]
"""
NINJA = """#!/bin/sh
[ -z "$NINJA_FAILS" ] || { echo "FAILED: bin/tilewright"; exit 1; }
mkdir -p "$2/bin"
printf '#!/bin/sh\\necho "tool $*"\\n' > "$2/bin/tilewright"
chmod 755 "$2/bin/tilewright"
"""


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


class Setup(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.folder.chmod(0o755)
        self.tree = self.folder / "a tree"
        (self.tree / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "run", self.tree)
        for name in ("setup.sh", "build_progress.py"):
            shutil.copy(ROOT / "tools" / name, self.tree / "tools")
        (self.tree / "tools/python_environment.py").write_text("")  # makes none
        programs = self.folder / "programs"
        programs.mkdir()
        write_program(programs / "cmake", CMAKE)
        write_program(programs / "ninja", NINJA)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "TILEWRIGHT_KERNELS": "OFF"}

    def run_it(self, path, *arguments, user=None, **variables):
        done = subprocess.run(
            [path, *arguments], env={**self.environment, **variables}, cwd=self.folder, user=user,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def test_a_link_to_run_works(self):
        link = self.folder / "link"
        link.symlink_to(self.tree / "run")
        status, text = self.run_it(link, "info")
        self.assertEqual((status, text.splitlines()[-1]), (0, "tool info"))
        self.assertIn("ten to twenty minutes", text)  # said once, before it is built
        self.assertEqual(self.run_it(link, "info"), (0, "tool info\n"))

    def test_a_moved_checkout_is_built_anew(self):
        self.assertEqual(self.run_it(self.tree / "run", "info")[0], 0)
        moved = self.tree.rename(self.folder / "moved")
        status, text = self.run_it(moved / "run", "info")
        self.assertEqual(status, 0, text)
        self.assertIn(f"built at {self.tree}; build/release is built anew", text)
        self.assertNotIn("anew", self.run_it(moved / "run", "info")[1])

    def test_a_failed_build_names_a_remedy(self):
        status, text = self.run_it(self.tree / "run", "info", NINJA_FAILS="1")
        self.assertEqual(status, 1)
        self.assertIn("remove the folder build/release", text)

    def test_a_checkout_that_cannot_be_written_is_used_as_it_was_built(self):
        user = NOBODY if os.getuid() == 0 else None
        if user is None:
            self.tree.chmod(0o555)
            self.addCleanup(self.tree.chmod, 0o755)
        status, text = self.run_it(self.tree / "run", "info", user=user)
        self.assertEqual(status, 1)
        self.assertEqual(text.count("\n"), 1, text)
        self.assertIn("is not writable", text)
        if user is None:
            self.tree.chmod(0o755)
        self.assertEqual(self.run_it(self.tree / "run", "info")[0], 0)
        if user is None:
            (self.tree / "build").chmod(0o555)
            self.addCleanup((self.tree / "build").chmod, 0o755)
        self.assertEqual(self.run_it(self.tree / "run", "info", user=user), (0, "tool info\n"))

    def test_the_compiler_is_fetched_by_hash(self):
        lines = (ROOT / "tools/cuda-requirements.txt").read_text()
        packages = [line for line in lines.splitlines() if "==" in line]
        self.assertEqual(len(packages), 4)
        self.assertEqual(lines.count("--hash=sha256:"), 8, "x86-64 and 64-bit Arm of each")
        self.assertIn("--require-hashes", (ROOT / "tools/setup.sh").read_text())


if __name__ == "__main__":
    unittest.main()
