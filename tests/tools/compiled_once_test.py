"""That tests/compiled_once.txt names tests that exist. CMake refuses a list that does not, but only when ./test
builds the sanitized programs: a test that was moved would be found late."""

import pathlib
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]


def named():
    lines = (TESTS / "compiled_once.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class CompiledOnce(unittest.TestCase):
    def test_each_name_is_that_of_a_test(self):
        self.assertGreater(len(named()), 50)
        self.assertEqual([name for name in named() if not list(TESTS.glob(name))], [])

    def test_no_name_twice(self):
        self.assertEqual(sorted(named()), sorted(set(named())))


if __name__ == "__main__":
    unittest.main()
