"""Which predicted logs are older than what they were made from, and what is written of them."""

import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import draw_times  # noqa: E402
import make_predicted_times as make  # noqa: E402

KERNEL = ".file 1 \"/a/k.cu\"\n.visible .entry k()\n{\n.loc 1 2 3\n// a comment\nret;\n}\n"


class MakePredictedTimes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.build = pathlib.Path(self.folder.name)
        patch = mock.patch.object(make, "LOGS", self.build)
        patch.start()
        self.addCleanup(patch.stop)

    def add_kernel(self, text, target="sm_90a"):
        path = self.build / f"kernels/linear/k.{target}.ptx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_parts_are_those_of_bench_timing(self):
        source = (ROOT / "src/bench/timing/blackwell_points.cpp").read_text()
        self.assertEqual(re.findall(r'part_ = "([a-z-]+)";', source), list(make.B200))

    def test_logs_of_measurements_are_there(self):
        for logs, _, _ in make.H200.values():
            for log in logs:
                self.assertTrue((ROOT / "bench/results" / log).exists(), log)

    def test_errors_in_source_are_those_of_the_logs(self):
        text = make.errors_table(draw_times.read_logs())
        self.assertEqual(make.ERRORS.read_text(), text, "run tools/make_predicted_times.py --tables")

    def test_ranges_are_quantiles_and_of_few_points_the_extremes(self):
        self.assertEqual(draw_times.range_of([0.3, -0.1, 0.2]), (-0.1, 0.3))
        low, high = draw_times.range_of([i / 100 for i in range(21)])
        self.assertAlmostEqual(low, 0.02)
        self.assertAlmostEqual(high, 0.18)

    def test_choices_are_made_by_the_prediction_and_paid_as_measured(self):
        points = [{"shape": "s", "kernel": kernel, "predicted_us": p, "measured_us": m}
                  for kernel, p, m in (("w:a", 10, 22), ("w:b", 11, 20), ("w:c", 30, 40))]
        points.append({"shape": "alone", "kernel": "w:a", "predicted_us": 1, "measured_us": 1})
        (choice,) = draw_times.choices_of(points)
        self.assertEqual((choice["chosen"], choice["fastest"], choice["kernels"]), ("a", "b", 3))
        self.assertAlmostEqual(choice["cost"], 0.1)
        self.assertAlmostEqual(choice["spread"], 2)

    def test_a_log_is_old_when_kernels_or_model_are_others(self):
        self.add_kernel(KERNEL)
        self.assertIn("says nothing", make.state_of("linear", self.build))
        make.write_log("linear", {"points": [{"error": 0.123456789}]}, 1.25, self.build)
        self.assertEqual(make.state_of("linear", self.build), "")
        self.assertEqual(make.record_of("linear")["seconds"], 1.2)
        self.assertEqual(make.read_log("linear")["points"], [{"error": 0.1234568}])
        # Where its source lies and on which lines it is says nothing of a kernel; what it does does.
        self.add_kernel(KERNEL.replace("/a/", "/b/").replace(".loc 1 2 3", ".loc 1 4 5"))
        self.assertEqual(make.state_of("linear", self.build), "")
        self.add_kernel(KERNEL, "sm_100f")  # of another device
        self.assertEqual(make.state_of("linear", self.build), "")
        self.add_kernel(KERNEL.replace("ret;", "exit;"))
        self.assertEqual(make.state_of("linear", self.build), "is older than the kernels")
        with mock.patch.object(make, "model_digest", lambda is_b200: "another"):
            self.assertEqual(make.state_of("linear", self.build), "is older than the model and the kernels")

    def test_without_a_build_nothing_is_said_to_be_new(self):
        self.add_kernel(KERNEL)
        make.write_log("linear", {"points": []}, 1, self.build)
        self.assertIn("build first", make.state_of("linear", self.build / "none"))

    def test_a_part_takes_its_own_place_alone(self):
        self.add_kernel(KERNEL, "sm_100f")
        for part, us in (("linear", 1), ("attention", 2), ("linear", 3)):
            result = {"sample": 4, "points": [{"part": part, "predicted_us": us}]}
            path = make.write_log(f"b200:{part}", result, us, self.build)
        log = json.loads(path.read_text())
        self.assertEqual([(p["part"], p["predicted_us"]) for p in log["points"]],
                         [("attention", 2), ("linear", 3)])
        self.assertEqual(make.record_of("b200:linear")["seconds"], 3)
        self.assertEqual(make.record_of("b200:attention")["seconds"], 2)

    def test_names_that_do_not_exist_are_refused(self):
        self.assertEqual(make.chosen(["b200:linear", "moe"]), ["b200:linear", "moe"])
        self.assertEqual(make.chosen(["b200"]), [f"b200:{part}" for part in make.B200])
        with self.assertRaises(SystemExit):
            make.chosen(["lineer"])


if __name__ == "__main__":
    unittest.main()
