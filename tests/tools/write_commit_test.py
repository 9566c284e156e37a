"""What the build writes down as its commit."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "write_commit.cmake"
IDENTITY = ["-c", "user.name=test", "-c", "user.email=test@localhost"]


@unittest.skipUnless(shutil.which("git") and shutil.which("cmake"), "needs git and cmake")
class WriteCommit(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.tree = pathlib.Path(self.folder.name) / "tree"
        (self.tree / "src").mkdir(parents=True)
        (self.tree / "src" / "a.cpp").write_text("int a;\n")

    def git(self, *words):
        return subprocess.run(["git", "-C", str(self.tree), *IDENTITY, *words], check=True, capture_output=True,
                              text=True).stdout.strip()

    def commit_all(self):
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-qm", "all")
        return self.git("rev-parse", "--short=12", "HEAD")

    def written(self, source=None, commit=""):
        out = pathlib.Path(self.folder.name) / "commit.cpp"
        environment = dict(os.environ, TILEWRIGHT_COMMIT=commit, GIT_CEILING_DIRECTORIES=self.folder.name)
        done = subprocess.run(["cmake", f"-DSOURCE={source or self.tree}", f"-DOUT={out}", "-P", str(SCRIPT)],
                              capture_output=True, text=True, env=environment)
        if done.returncode:
            return done.stderr
        return re.search(r'kBuiltCommit\[\] = "(.*)";', out.read_text())[1]

    def test_a_clean_tree_is_its_commit(self):
        head = self.commit_all()
        self.assertEqual(self.written(), head)
        (self.tree / "notes.md").write_text("not built\n")
        self.assertEqual(self.written(), head)

    def test_changed_and_new_sources_are_marked(self):
        head = self.commit_all()
        (self.tree / "src" / "b.cpp").write_text("int b;\n")
        self.assertEqual(self.written(), head + "-dirty")
        (self.tree / "src" / "b.cpp").unlink()
        (self.tree / "src" / "a.cpp").write_text("int c;\n")
        self.assertEqual(self.written(), head + "-dirty")

    def test_the_environment_says_it_of_a_copy(self):
        self.commit_all()
        self.assertEqual(self.written(commit="0123456789ab-dirty"), "0123456789ab-dirty")
        self.assertIn("TILEWRIGHT_COMMIT is 'a b'", self.written(commit="a b"))

    def test_no_repository_of_its_own(self):
        self.assertEqual(self.written(), "unknown")
        self.commit_all()
        self.assertEqual(self.written(source=self.tree / "src"), "unknown")


if __name__ == "__main__":
    unittest.main()
