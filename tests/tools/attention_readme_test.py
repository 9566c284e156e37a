"""The tables that are made from logs, the log of compile times and that of the profiler."""

import json
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import make_attention_profile  # noqa: E402
import make_attention_readme  # noqa: E402
import measure_compile  # noqa: E402


def log_of(**seconds):
    return {"toolkit": "13.0.88", "processor": "P",
            "files": [{"file": name, "nvcc_s": nvcc, "ptxas_s": ptxas} for name, (nvcc, ptxas) in seconds.items()]}


class AttentionReadme(unittest.TestCase):
    def test_two_cores_share_the_files(self):
        text = " ".join(make_attention_readme.compile_times(log_of(a=(10, 20), b=(10, 10), c=(20, 10)), "c.json"))
        self.assertIn("in 80 s of processor time (nvcc 13.0.88, P)", text)
        self.assertIn("two cores do in about 40 s; `a` alone takes 30 s", text)

    def test_one_long_file_is_the_least(self):
        text = " ".join(make_attention_readme.compile_times(log_of(a=(30, 20), b=(5, 5)), "c.json"))
        self.assertIn("two cores do in about 50 s", text)

    def test_notes_and_kernels_are_there(self):
        for stem in make_attention_readme.NOTES.values():
            self.assertTrue((ROOT / "docs/notes" / f"{stem}.md").exists(), stem)
        for stem in make_attention_readme.FILES.values():
            self.assertTrue(make_attention_readme.header_sentence(stem))

    def test_a_step_of_the_ladder_fits_in_a_head(self):
        new = make_attention_readme.new_lines()
        self.assertLessEqual({"k1", "k2", "k3_1", "k4_1", "k4_2", "k5", "k6_1", "k6_2", "k6_3"}, new.keys())
        for kernel, lines in new.items():
            self.assertGreater(lines, 0, kernel)
            self.assertLessEqual(lines, 120, f"{kernel} has more lines that the rung before it has not: split it")

    def test_new_lines_are_those_that_the_rung_before_has_not(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "a.cu").write_text("// K1: a\nint a;\nint b;  // same\n\nint c;\n")
            (folder / "b.cu").write_text("// another\nint b;\nint c;\nint d;\nint e;\n")
            with unittest.mock.patch.object(make_attention_readme, "FOLDER", folder), \
                    unittest.mock.patch.object(make_attention_readme, "FILES",
                                               {"k1": "a", "k2_1": "b", "k2_2": "b", "k3": "forward/c"}):
                self.assertEqual(make_attention_readme.new_lines(), {"k1": 3, "k2_1": 2})

    def test_the_committed_page_is_that_of_its_logs(self):
        page = "\n".join(make_attention_readme.readme(make_attention_readme.parse([])))
        self.assertEqual((ROOT / "src/kernels/attention/README.md").read_text(), page,
                         "run tools/make_attention_readme.py")

    def test_links_of_the_page_lead_somewhere(self):
        folder = ROOT / "src/kernels/attention"
        for target in re.findall(r"\]\(([^)#]+)\)", (folder / "README.md").read_text()):
            self.assertTrue((folder / target).exists(), target)

    def test_kernels_are_measured_with_the_flags_of_the_build(self):
        self.assertIn("-O3", measure_compile.flags())
        self.assertIn(str(ROOT / "src"), measure_compile.flags())


HEAD = ('"ID","Kernel Name","Block Size","Grid Size","Section Name","Metric Name","Metric Unit","Metric Value",'
        '"Rule Name","Rule Description"\n')


def csv_of(launches):
    """What Nsight Compute prints: `launches` are pairs of an entry's name and a factor of its values."""
    text = "==PROF== Connected\n" + HEAD
    for idx, (entry, factor) in enumerate(launches):
        for place, (_, section, metric) in enumerate(make_attention_profile.METRICS):
            text += (f'"{idx}","{entry}","(256, 1, 1)","(9, 1, 1)","{section}","{metric}","",'
                     f'"{factor * (place + 1):,}",,\n')
        text += (f'"{idx}","{entry}","(256, 1, 1)","(9, 1, 1)","WarpStateStats","","","","CPIStall","On average, '
                 'each warp of this workload spends 25.7 cycles being stalled waiting for data. This stall type '
                 'represents about 51.8% of the total"\n')
    return text


class AttentionProfile(unittest.TestCase):
    def read(self, name, launches):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_text(csv_of(launches))
            return make_attention_profile.read_launches(path)

    def test_repeated_launches_count_once(self):
        launches = self.read("ncu_k2.csv", [("attention_k2_bf16_d128", 1000), ("attention_k2_bf16_d128", 3000)])
        self.assertEqual([1000], [launch["duration_ns"] for launch in launches])
        self.assertEqual(2000, launches[0]["elapsed_cycles"])  # "2,000"
        self.assertEqual([{"reason": "data", "cycles": 25.7, "percent": 51.8}], launches[0]["stalls"])

    def test_launches_of_several_kernels_are_rows(self):
        launches = self.read("ncu_k1.csv", [("attention_k1_scores_bf16_d128", 1), ("attention_k1_softmax", 1)])
        self.assertEqual(["k1, scores", "k1, softmax"], [make_attention_profile.launch_name(x) for x in launches])

    def test_a_metric_that_is_missing_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ncu_k2.csv"
            path.write_text("".join(line for line in csv_of([("attention_k2_bf16_d128", 1)]).splitlines(True)
                                    if "L2 Hit Rate" not in line))
            with self.assertRaisesRegex(KeyError, "L2 Hit Rate"):
                make_attention_profile.read_launches(path)

    def test_all_reasons_for_waiting_if_they_were_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ncu_k2.csv"
            text = csv_of([("attention_k2_bf16_d128", 1)])
            for reason, cycles in (("selected", 1), ("long_scoreboard", 3), ("barrier", 0.5), ("wait", 1),
                                   ("mio", 0.5)):
                text += ('"0","attention_k2_bf16_d128","","","Command line profiler metrics","smsp__average_warps_'
                         f'issue_stalled_{reason}_per_issue_active.ratio","inst","{cycles}",,\n')
            path.write_text(text)
            launch, = make_attention_profile.read_launches(path)
        self.assertEqual("long scoreboard: 60; wait: 20; barrier: 10", make_attention_profile.stall_text(launch))

    def test_occupancy_is_the_least_limit(self):
        log = json.loads((make_attention_readme.RESULTS / make_attention_readme.PROFILE).read_text())
        found = {make_attention_profile.launch_name(x): make_attention_profile.limits(x) for x in log["launches"]}
        self.assertEqual((8, "registers, warps"), found["k1, scores"])
        self.assertEqual((1, "shared memory"), found["k4_2"])

    def test_the_share_of_the_tensor_core(self):
        log = json.loads((make_attention_readme.RESULTS / make_attention_readme.PROFILE).read_text())
        by_name = {x["kernel"]: x for x in log["launches"]}
        self.assertEqual(0, make_attention_profile.tensor_percent(by_name["k3_3"]))
        # q k^T alone, all tiles of it: about 15.5 of 989 TFLOP/s. The clock differs from run to run.
        self.assertAlmostEqual(1.55, make_attention_profile.tensor_percent(by_name["k4_1"]), delta=0.1)
        # K4.2 visits every tile of both products: computed as for K4.1 it is what the profiler measured.
        flop = 2 * make_attention_profile.UNNAMED_TENSOR_FLOP["k4_1"]
        computed = 100 * flop / (make_attention_profile.TENSOR_FLOP_PER_CYCLE * by_name["k4_2"]["elapsed_cycles"])
        self.assertAlmostEqual(make_attention_profile.tensor_percent(by_name["k4_2"]), computed, delta=0.5)


if __name__ == "__main__":
    unittest.main()
