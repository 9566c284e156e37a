"""bench/public_times.py: which rows of a log are taken, what is added up, and the log that it writes."""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import public_times  # noqa: E402


def predicted(us, **waits):
    return {"kernel": "k", "predicted": {"us": us, "busy_us": {"HBM": us / 2}, "wait_us": waits,
                                         "costs_from": "PTX"}}


class PublicTimes(unittest.TestCase):
    def test_rows_of_one_source_that_have_times_and_are_wanted(self):
        row = {"source": "theirs", "kernel": "k", "problem": {"batch": 8, "causal": True}, "samples_us": [3, 1, 2]}
        log = {"samples": [row, row | {"source": "tilewright"}, row | {"samples_us": [200]},
                           row | {"problem": {"batch": 8, "causal": False}},
                           {k: v for k, v in row.items() if k != "samples_us"}]}
        args = argparse.Namespace(source="theirs", where=["causal=True"], most_us=100)
        self.assertEqual(list(public_times.rows_of(log, args)), [(row, 2)])

    def test_kernels_of_a_call_are_added_up(self):
        both = public_times.add_up([predicted(2.0, mbarrier=1.0), predicted(3.0, mbarrier=0.5, own=1.0)])
        self.assertEqual(both["us"], 5)
        self.assertEqual(both["busy_us"], {"HBM": 2.5})
        self.assertEqual(both["wait_us"], {"mbarrier": 1.5, "own": 1.0})
        self.assertEqual(public_times.largest(both["wait_us"], both["us"]), "mbarrier 30 %")
        with self.assertRaises(SystemExit):
            public_times.add_up([predicted(2.0), {"kernel": "k", "predicted": {"problem": "none"}}])

    def test_a_source_takes_its_own_place_in_the_log(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "log.json"
            for source, points in (("a", [1]), ("b", [2]), ("a", [3])):
                public_times.write(path, "h200", {"source": source, "points": points})
            log = json.loads(path.read_text())
        self.assertEqual([(s["source"], s["points"]) for s in log["sources"]], [("b", [2]), ("a", [3])])

    def test_summaries_are_of_signed_errors(self):
        summary = public_times.summary_of([{"error": -0.1}, {"error": 0.3}, {"error": -0.2}])
        self.assertAlmostEqual(summary["mean_absolute_error"], 0.2)
        self.assertEqual(summary["worst_error"], 0.3)
        self.assertAlmostEqual(summary["bias"], 0)


if __name__ == "__main__":
    unittest.main()
