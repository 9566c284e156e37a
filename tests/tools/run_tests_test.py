"""What the runner of the tests prints at its end."""

import contextlib
import io
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import run_tests  # noqa: E402


def summary(*results):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run_tests.print_summary(list(results), 7)
    return text.getvalue()


def result(name, passed, failed=0, skipped=()):
    made = run_tests.Result(name, "release")
    made.passed, made.failed, made.skipped = passed, failed, list(skipped)
    return made


class RunTests(unittest.TestCase):
    def test_the_last_line_is_plain_counts(self):
        text = summary(result("base", 5), result("device", 2, 1, ["GpuTest.One", "Other.Two"]))
        self.assertEqual(text.splitlines()[-1], "7 passed, 1 failed, 2 skipped")
        self.assertTrue(text.endswith("\n"))
        self.assertIn("1 tests need a GPU", text)

    def test_no_other_line_looks_like_it(self):
        text = summary(result("base", 5))
        self.assertEqual(len(re.findall(r"^\d+ passed, \d+ failed, \d+ skipped$", text, re.M)), 1)
        self.assertEqual(text.splitlines()[-1], "5 passed, 0 failed, 0 skipped")


class ReleaseOnly(unittest.TestCase):
    def job(self, *patterns):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "some_tests"
            path.write_text("#!/bin/sh\nprintf 'Sim/Suite.\\n  One/h200  # GetParam() = 1\\n  Two\\n'\n")
            path.chmod(0o755)
            with mock.patch.dict(run_tests.RELEASE_ONLY, {"some_tests": list(patterns)}):
                return run_tests.release_only_job(path)

    def test_patterns_that_name_tests_pass(self):
        made = self.job("*Suite.One*", "Sim/Suite.Two")
        self.assertEqual((made.passed, made.failed), (2, 0))

    def test_a_pattern_without_a_test_fails_by_name(self):
        made = self.job("*Suite.Three*")
        self.assertEqual(made.failed, 1)
        self.assertIn("*Suite.Three*", made.output)


if __name__ == "__main__":
    unittest.main()
