"""Every kernel for sm_100a that the library has has a predicted time, in one of two logs."""

import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import predict_tested_kernels as tested  # noqa: E402


class PredictTestedKernels(unittest.TestCase):
    def test_every_kernel_is_predicted(self):
        missing = tested.entries() - tested.predicted() - set(tested.WITHOUT)
        self.assertEqual(sorted(missing), [], "run tools/predict_tested_kernels.py, or say why not in WITHOUT")

    def test_what_has_no_prediction_is_few_and_says_why(self):
        self.assertLess(len(tested.WITHOUT), 16)
        for name, why in tested.WITHOUT.items():
            self.assertIn(name, tested.entries())
            self.assertNotIn(name, tested.predicted(), f"{name} has one")
            self.assertGreater(len(why.split()), 4, name)

    def test_kernels_of_tests_are_none_of_the_library(self):
        text = "\n".join(path.read_text() for path in (ROOT / "src/kernels").rglob("*.cu"))
        for prefix in tested.OF_TESTS:
            self.assertIsNone(re.search(rf"__global__[^;{{]*\b{prefix}", text), prefix)
            found = [path for path in (ROOT / "tests/kernels").rglob("*.cu")
                     if prefix.rstrip("_") in path.read_text()]
            self.assertTrue(found, prefix)

    def test_a_kernel_that_no_log_has_is_missed(self):
        with tempfile.TemporaryDirectory() as folder:
            logs = pathlib.Path(folder)
            (logs / "2026-01-01-predicted-b200.json").write_text(json.dumps(
                {"points": [{"predicted_us": 1, "kernels": ["a"]}, {"problem": "none", "kernels": ["b"]}]}))
            (logs / "2026-01-01-predicted-b200-tests.json").write_text(json.dumps({"kernels": {"c": {}}}))
            with mock.patch.object(tested, "LOGS", logs):
                self.assertEqual(tested.predicted(), {"a", "c"})

    def test_a_row_is_the_mean_of_launches(self):
        row = tested.row_of({"predicted": {"us": 30.0, "launches": 3, "ctas": 6, "busy_us": {"HBM": 15, "L2": 3},
                                           "wait_us": {"own": 6}, "costs_from": "PTX"}}, "ops_tests")
        self.assertEqual((row["us"], row["ctas"]), (10, 2))
        self.assertEqual((row["busiest"], row["longest_wait"]), ("HBM 50 %", "own 20 %"))


if __name__ == "__main__":
    unittest.main()
