"""What a build that nobody watches says."""

import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import build_progress  # noqa: E402


class Progress(unittest.TestCase):
    def follow(self, *timed):
        """Lines with the second at which each comes -> what is said, and the log."""
        clock, said, log = [0.0], [], io.StringIO()

        def lines():
            for at, line in timed:
                clock[0] = at
                yield line

        build_progress.follow(lines(), log, "release", said.append, lambda: clock[0])
        return said, log.getvalue()

    def test_a_short_build_says_nothing(self):
        said, log = self.follow((1, "[1/2] a\n"), (9, "[2/2] b\n"))
        self.assertEqual(said, [])
        self.assertEqual(log, "[1/2] a\n[2/2] b\n")

    def test_a_long_one_says_how_far_it_is_once_a_minute(self):
        said, _ = self.follow((5, "[1/9] a\n"), (11, "warning: x\n"), (12, "[2/9] b\n"), (70, "[3/9] c\n"),
                              (72, "[4/9] d\n"))
        self.assertEqual(said, ["tilewright: building release: 2 of 9 steps after 12 s",
                                "tilewright: building release: 4 of 9 steps after 72 s"])


if __name__ == "__main__":
    unittest.main()
