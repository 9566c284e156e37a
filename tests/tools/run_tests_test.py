"""What the runner of the tests prints at its end."""

import contextlib
import io
import pathlib
import re
import sys
import unittest

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


if __name__ == "__main__":
    unittest.main()
