"""That a stale, a missing and an orphaned generated file are named."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_generated  # noqa: E402

SCRIPT = """import pathlib
for name in ("one", "two"):
    (pathlib.Path(__file__).resolve().parents[2] / f"tests/ptx/{name}.ptx").write_text(
        f"// {name}: made by tools/ptx/make_ptx_tests.py, which says how\\n")
"""
GOOD = "// {}: made by tools/ptx/make_ptx_tests.py, which says how\n"


class CheckGenerated(unittest.TestCase):
    def findings(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("tools/ptx", "tests/ptx", "tests/golden", "bench"):
                (root / name).mkdir(parents=True)
            (root / "tools/ptx/make_ptx_tests.py").write_text(SCRIPT)
            for name, text in files.items():
                (root / f"tests/ptx/{name}.ptx").write_text(text)
            with mock.patch.object(check_generated, "ROOT", root):
                wrong = [line for generator in check_generated.generators("ptx")
                         for line in check_generated.check(generator)]
                return wrong + [path.name for path in check_generated.without_generator()]

    def test_fresh_files_pass(self):
        self.assertEqual(self.findings(one=GOOD.format("one"), two=GOOD.format("two")), [])

    def test_a_changed_file_is_named_with_the_remedy(self):
        line, = self.findings(one=GOOD.format("one") + "ret;", two=GOOD.format("two"))
        self.assertIn("tests/ptx/one.ptx: not what its generator writes; run tools/ptx/make_ptx_tests.py", line)

    def test_a_missing_file_is_named(self):
        line, = self.findings(one=GOOD.format("one"))
        self.assertIn("tests/ptx/two.ptx: missing", line)

    def test_a_file_that_is_written_no_more_is_named(self):
        line, = self.findings(one=GOOD.format("one"), two=GOOD.format("two"), three=GOOD.format("three"))
        self.assertIn("tests/ptx/three.ptx: tools/ptx/make_ptx_tests.py does not write it any more", line)

    def test_a_file_without_a_generator_is_named(self):
        self.assertEqual(self.findings(one=GOOD.format("one"), two=GOOD.format("two"), hand="// by hand\n"),
                         ["hand.ptx"])


if __name__ == "__main__":
    unittest.main()
