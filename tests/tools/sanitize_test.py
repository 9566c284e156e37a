"""The sweep under compute-sanitizer, with a stand-in for the sanitizer."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import sanitize  # noqa: E402

FAKE = """#!/bin/sh
[ "$1" = --version ] && { echo "NVIDIA (R) Compute Sanitizer"; echo "Version 2025.3.1"; exit 0; }
echo "check      correct: max error 0.001"
case "$2 $*" in
  racecheck*"--kernel k5"*) echo "========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)";;
  racecheck*) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)";;
  *) echo "========= ERROR SUMMARY: 0 errors";;
esac
"""


class Sanitize(unittest.TestCase):
    def run_fake(self, text, *arguments):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            fake = folder / "sanitizer"
            fake.write_text(text)
            fake.chmod(0o755)
            done = subprocess.run([sys.executable, TOOLS / "sanitize.py", "--sanitizer", fake, "--tilewright",
                                   fake, "--out", folder / "out", *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            summary = folder / "out" / "summary.json"
            return done, json.loads(summary.read_text()) if summary.exists() else None

    def test_clean_runs_end_with_0(self):
        done, summary = self.run_fake(FAKE, "--kernels", "k2")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("8 runs, 0 not clean", done.stdout)
        self.assertIn("Version 2025.3.1", done.stdout)
        self.assertEqual([row["case"] for row in summary["cases"]], ["k2 d64 causal", "k2 d128 causal"])

    def test_hazards_are_counted(self):
        done, summary = self.run_fake(FAKE, "--kernels", "k5", "--tools", "memcheck,racecheck")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 + 2", done.stdout)
        result = summary["cases"][0]["results"]
        self.assertEqual((result["racecheck"]["errors"], result["racecheck"]["warnings"]), (1, 2))
        self.assertTrue(sanitize.is_clean(result["memcheck"]))

    def test_a_run_without_its_end_or_with_a_wrong_result_is_not_clean(self):
        done, _ = self.run_fake("#!/bin/sh\nexit 7\n", "--kernels", "k1", "--tools", "memcheck")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended with 7", done.stdout)
        wrong = sanitize.read_output("check      WRONG\n========= ERROR SUMMARY: 0 errors\n", 1)
        self.assertFalse(sanitize.is_clean(wrong))
        self.assertEqual(sanitize.word_of(wrong), "wrong")

    def test_unknown_tools_are_refused(self):
        done, _ = self.run_fake(FAKE, "--tools", "lintcheck")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--tools lintcheck", done.stdout)

    def test_every_rung_is_among_the_cases(self):
        kernels = {case.kernel for case in sanitize.make_cases()}
        rungs = json.loads((sanitize.ROOT / "tools/attention_rungs.json").read_text())
        self.assertEqual({rung["kernel"] for rung in rungs} | {"k7", "k8", "decode"}, kernels)

    def test_every_case_has_a_name_of_its_own(self):
        names = [case.name for case in sanitize.make_cases()]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_tests_are_those_of_the_sample_that_run_on_a_gpu_and_more(self):
        cases = sanitize.make_test_cases()
        names = [case.name for case in cases]
        self.assertIn("MoeRunTest.BandInEveryFormat", names)  # of the sample
        self.assertIn("AttentionPagedTest.EveryFormOfTheKernel", names)  # of the others
        self.assertNotIn("AttentionSm100Test.", names)  # on the simulator alone
        self.assertEqual(sorted(set(names)), sorted(names))
        self.assertEqual({case.program for case in cases} - {"ops_tests", "model_tests"}, set())
        args = argparse.Namespace(sanitizer="sanitizer", tilewright=pathlib.Path("build/bin/tilewright"))
        words = sanitize.command_of(cases[0], "memcheck", args, pathlib.Path("/nowhere"))
        self.assertEqual(words[-2:], ["build/bin/ops_tests", f"--gtest_filter=GpuTest/{cases[0].name}*"])

    def test_every_test_is_there(self):
        sources = "".join(path.read_text() for path in (sanitize.ROOT / "tests").rglob("*_test.cpp"))
        for case in sanitize.make_test_cases():
            suite, test = case.pattern.rstrip("*").split(".")
            self.assertIn(f"TEST_P({suite}, {test}", sources)

    def test_places_are_counted(self):
        hazard = ("========= Error: Race reported between Write access at writer<int>(int)+0x110 in ring.h:20\n"
                  "=========     and Read access at reader()+0x90 in reader.h:7 [64 hazards]\n"
                  "=========         Device Frame: kernel+0x20 in kernel.cu:3\n=========\n")
        barrier = ("========= Barrier error detected. Divergent thread(s) in block.\n"
                   "=========     at band_sync()+0x10 in work.h:49\n"
                   "=========     by thread (0,0,0) in block (0,0,0)\n")
        text = "========= COMPUTE-SANITIZER\n" + 2 * hazard + barrier + "========= ERROR SUMMARY: 3 errors\n"
        self.assertEqual(sanitize.read_output(text, 1)["places"], {"ring.h:20 and reader.h:7": 2, "work.h:49": 1})

    def test_tests_that_were_skipped_or_failed_are_not_right(self):
        end = "========= ERROR SUMMARY: 0 errors\n"
        for text, is_right in (("[  PASSED  ] 3 tests.\n", True), ("[  PASSED  ] 0 tests.\n", False),
                               ("[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test\n", False)):
            self.assertEqual(sanitize.read_output(text + end, 0)["is_right"], is_right, text)

    def test_decode_draws_its_tensors(self):
        args = argparse.Namespace(sanitizer="sanitizer", tilewright="tilewright", device="cuda:0")
        for case in sanitize.make_cases():
            if case.kernel == "decode":
                words = sanitize.command_of(case, "memcheck", args, pathlib.Path("/nowhere"))
                self.assertEqual(words[words.index("--head-dim") + 1], str(case.head_dim))
                self.assertIn("--check", words)
                self.assertNotIn("--q", words)


if __name__ == "__main__":
    unittest.main()
